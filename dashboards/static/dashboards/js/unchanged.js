// What is asked for again and is still the same is left alone, so that a text can be selected and a button stays focused.
// Ages are no change: they are taken over where they stand.
const TIME = /<time\b[^>]*>[^<]*<\/time>/g;

export function bindUnchanged() {
  document.body.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
    const { target, fragment } = detail;
    if (!fragment.innerHTML || withoutTimes(target) !== withoutTimes(fragment)) return;
    detail.shouldSwap = false;
    const fresh = fragment.querySelectorAll("time");
    target.querySelectorAll("time").forEach((time, at) => time.replaceWith(fresh[at].cloneNode(true)));
  });
}

function withoutTimes(element) {
  return element.innerHTML.replace(TIME, "<time>");
}
