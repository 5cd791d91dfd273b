// Parts of a page that are asked for by themselves, or by a click, and cannot be had: one line at the bottom says so, and
// since when what is shown stands still. It goes when every part that is still there was had again.
const WORDS = {
  0: "The server does not answer",
  401: "Your session has ended",
  403: "Your role does not include this",
  404: "What is asked for is not there any more: somebody removed it",
};
const SIGNED_OUT = 401;
// What a person asked for once is said once.
const SAID_FOR_MS = 10000;

export function bindReach() {
  const bar = document.getElementById("reach");
  const missing = new Map();

  function lost({ detail }) {
    const { elt, xhr, requestConfig } = detail;
    const isRepeated = requestConfig.triggeringEvent == null;
    const since = (isRepeated && missing.get(elt)?.since) || new Date();
    missing.set(elt, { since, isRepeated, status: xhr.status, verb: requestConfig.verb });
    show();
    if (!isRepeated) setTimeout(() => { missing.delete(elt); show(); }, SAID_FOR_MS);
  }

  function had({ detail }) {
    if (detail.successful && missing.delete(detail.elt)) show();
  }

  function show() {
    for (const [part, { isRepeated }] of missing) if (isRepeated && !part.isConnected) missing.delete(part);
    const [first] = [...missing.values()].sort((one, other) => one.isRepeated - other.isRepeated || one.since - other.since);
    bar.hidden = first === undefined;
    if (first === undefined) return;
    const said = textOf(first);
    const text = bar.querySelector("span");
    if (text.textContent !== said) text.textContent = said; // or a screen reader would read it again and again
    bar.querySelector("a").hidden = first.status !== SIGNED_OUT;
  }

  for (const name of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) document.body.addEventListener(name, lost);
  document.body.addEventListener("htmx:afterRequest", had);
  document.body.addEventListener("htmx:afterSettle", () => { if (missing.size) show(); });
}

function textOf({ since, isRepeated, status, verb }) {
  const what = WORDS[status] ?? `The server answered with status ${status}; its log says why`;
  if (isRepeated && status !== 404) return `${what}. What you see is from ${since.toISOString().slice(11, 19)} UTC.`;
  return verb === "get" ? `${what}.` : `${what}. Nothing is known to have changed.`;
}
