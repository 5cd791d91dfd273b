// Forms that keep what was typed when it is refused: [data-kept]. What is wrong is shown at its field.
const UNREACHABLE = "The server could not be reached. Nothing was changed; try again.";

export function bindKeptForms() {
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form[data-kept]")) return;
    event.preventDefault();
    if (!event.target.matches("[aria-busy]")) send(event.target, event.submitter);
  });
  document.addEventListener("input", (event) => {
    if (event.target.matches("form[data-kept] [aria-invalid]")) clearFault(event.target);
  });
}

async function send(form, submitter) {
  form.setAttribute("aria-busy", "true");
  clearFaults(form);
  try {
    const address = submitter?.hasAttribute("formaction") ? submitter.formAction : form.action;
    const answer = await fetch(address, {
      method: "POST",
      body: new FormData(form, submitter),
      headers: { "X-Pointsman-Form": "kept" },
    });
    const location = answer.headers.get("X-Pointsman-Location");
    if (location) go(location);
    else showFaults(form, await refusalOf(answer));
  } catch {
    showFaults(form, { message: UNREACHABLE, fields: {} });
  } finally {
    form.removeAttribute("aria-busy");
  }
}

function go(location) {
  const before = window.location.href;
  window.location.assign(location);
  // To the same page with another fragment nothing would be loaded.
  if (new URL(location, before).href.split("#")[0] === before.split("#")[0] && location.includes("#")) window.location.reload();
}

async function refusalOf(answer) {
  const isRefusal = answer.headers.get("Content-Type")?.startsWith("application/json");
  if (isRefusal) return answer.json();
  return {
    message: `The server answered with status ${answer.status}, and nothing is known to have changed. Copy what you typed, and load the page anew.`,
    fields: {},
  };
}

function showFaults(form, { message, fields }) {
  const loose = message ? [message] : [];
  for (const [name, texts] of Object.entries(fields)) {
    const control = controlOf(form, name);
    if (control) showFault(control, texts.join(" "));
    else loose.push(name === "__all__" ? texts.join(" ") : `${name}: ${texts.join(" ")}`);
  }
  if (loose.length) {
    const place = form.querySelector(".dialog-body") ?? form;
    place.prepend(faultElement(loose.join(" "), "form-error kept-fault"));
  }
  form.querySelector("[aria-invalid]")?.focus();
}

// "match.headers" belongs to a field match, "limits.factor" to a field factor.
function controlOf(form, name) {
  const parts = name.split(".");
  const names = parts.map((_, index) => parts.slice(0, parts.length - index).join("."));
  for (const wanted of [...names, parts.at(-1)]) {
    const found = form.elements.namedItem(wanted);
    const control = found instanceof RadioNodeList ? found[0] : found;
    if (control && control.type !== "hidden") return control;
  }
  return null;
}

function showFault(control, text) {
  const fault = faultElement(text, "error kept-fault");
  fault.id = `${control.id || control.name}-fault`;
  const field = control.closest(".field");
  if (field) field.append(fault);
  else control.form.append(fault);
  control.setAttribute("aria-invalid", "true");
  control.dataset.describedBefore = control.getAttribute("aria-describedby") ?? "";
  control.setAttribute("aria-describedby", `${control.dataset.describedBefore} ${fault.id}`.trim());
  const closed = control.closest("details:not([open])");
  if (closed) closed.open = true;
}

function faultElement(text, classes) {
  const made = document.createElement("div");
  made.className = classes;
  made.setAttribute("role", "alert");
  made.textContent = text;
  return made;
}

function clearFault(control) {
  document.getElementById(`${control.id || control.name}-fault`)?.remove();
  control.removeAttribute("aria-invalid");
  if (control.dataset.describedBefore) control.setAttribute("aria-describedby", control.dataset.describedBefore);
  else control.removeAttribute("aria-describedby");
}

function clearFaults(form) {
  for (const control of form.querySelectorAll("[aria-invalid]")) clearFault(control);
  for (const fault of form.querySelectorAll(".kept-fault")) fault.remove();
}
