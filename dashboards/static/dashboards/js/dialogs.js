// Dialogs: opened by [data-open-dialog], closed by [data-close-dialog], a click beside them, or Escape.
export function bindDialogs() {
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-open-dialog]");
    if (opener) document.getElementById(opener.dataset.openDialog).showModal();
    if (event.target.closest("[data-close-dialog]") || event.target.matches("dialog[open]")) {
      event.target.closest("dialog").close();
    }
  });
}
