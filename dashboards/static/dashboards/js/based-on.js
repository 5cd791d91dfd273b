// A form that says on which revision it is based ([data-base]) goes on saying so when the browser goes back to it and fills
// it in again: what was typed then is still a change of that revision, whatever was published since.
export function bindBasedOn() {
  document.addEventListener("input", ({ target }) => {
    const base = target.form?.querySelector("[data-base]");
    if (base) keep(base);
  });
  window.addEventListener("pageshow", () => {
    for (const base of document.querySelectorAll("[data-base]")) {
      const kept = history.state?.bases?.[base.form.action];
      if (kept !== undefined && isTyped(base.form)) base.value = kept;
    }
  });
}

function keep(base) {
  history.replaceState({ ...history.state, bases: { ...history.state?.bases, [base.form.action]: base.value } }, "");
}

function isTyped(form) {
  return [...form.elements].some(({ name, type, value, defaultValue, checked, defaultChecked }) => {
    if (!name || type === "hidden" || defaultValue === undefined) return false;
    return type === "checkbox" || type === "radio" ? checked !== defaultChecked : value !== defaultValue;
  });
}
