// What a page asks for again and again is not asked for while nobody sees it; the next time after that it is.
export function bindUnseen() {
  document.body.addEventListener("htmx:beforeRequest", (event) => {
    const { elt, requestConfig } = event.detail;
    const isRepeated = requestConfig.triggeringEvent == null && elt.getAttribute("hx-trigger")?.startsWith("every");
    if (document.hidden && isRepeated) event.preventDefault();
  });
}
