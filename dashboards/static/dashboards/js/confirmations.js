// What cannot be taken back is asked about first: [data-confirm] on the button of a form, hx-confirm elsewhere. The
// question says what is lost; the answer "no" has the focus.
export function bindConfirmations() {
  const dialog = document.getElementById("confirm");
  let agreed = null;

  function ask(question, action, act) {
    dialog.querySelector("p").textContent = question;
    dialog.querySelector(".button-danger").textContent = action;
    agreed = act;
    dialog.showModal();
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-confirm]");
    if (!button) return;
    event.preventDefault();
    ask(button.dataset.confirm, button.textContent.trim(), () => button.form.requestSubmit(button));
  });
  document.body.addEventListener("htmx:confirm", (event) => {
    const { question, elt, issueRequest } = event.detail;
    if (!question) return;
    event.preventDefault();
    ask(question, elt.textContent.trim(), () => issueRequest(true));
  });
  dialog.querySelector(".button-danger").addEventListener("click", () => {
    dialog.close();
    agreed();
  });
}
