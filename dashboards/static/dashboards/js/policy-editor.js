// A policy is one value, edited as a form or as JSON. The JSON is what is sent; the form writes into it and reads from
// it, and leaves alone what it does not know.
import { bindWalk } from "./walk.js";

const text = document.getElementById("policy-content");
const fields = [...document.querySelectorAll("[data-policy-field]")].map((element) => ({
  key: element.dataset.policyField,
  kind: element.dataset.kind,
  fallback: element.dataset.default,
  input: element.querySelector("input, select"),
}));

function read() {
  try {
    const value = JSON.parse(text.value);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

function showInForm(typedIn = document.activeElement) {
  const content = read();
  text.setAttribute("aria-invalid", String(content === null));
  if (content === null) return;
  for (const { key, kind, fallback, input } of fields) {
    if (input === typedIn) continue;
    if (kind === "switch") input.checked = content[key] === true;
    else if (kind === "term") input.checked = content[key] != null;
    else if (kind === "variant") input.value = variantOf(input, content[key]);
    else input.value = content[key] ?? (kind === "choice" ? fallback : "");
  }
}

function variantOf(input, content) {
  if (content == null) return "";
  const alike = [...input.options].find(({ value }) => value && value !== "own" && same(JSON.parse(value), content));
  return alike?.value ?? "own";
}

function same(one, other) {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name]);
}

function writeFrom({ key, kind, fallback, input }) {
  const content = read();
  if (content === null) return;
  const value = valueOf(kind, input, content[key]);
  if (value === null || String(value) === fallback) delete content[key];
  else content[key] = value;
  text.value = JSON.stringify(content, null, 2);
  edited();
}

function valueOf(kind, input, before) {
  if (kind === "switch") return input.checked || null;
  if (kind === "term") return input.checked ? before ?? {} : null;
  if (kind === "choice") return input.value;
  if (kind === "variant") return input.value ? JSON.parse(input.value) : null;
  return input.value === "" ? null : Number(input.value);
}

// What the preview finds at fault stands at its field; what belongs to none stays in the preview, of the JSON as a whole.
function showFaults(preview) {
  const found = new Map([...preview.querySelectorAll("[data-fault-of]")].map(({ dataset }) => [dataset.faultOf, dataset.fault]));
  for (const { key, input } of fields) showFault(key, input, found.get(key) ?? "");
  const isLoose = preview.querySelector("#content-faults") !== null;
  text.setAttribute("aria-invalid", String(isLoose));
  text.setAttribute("aria-describedby", `policy-content-help${isLoose ? " content-faults" : ""}`);
}

function showFault(key, input, said) {
  const fault = document.getElementById(`fault-${key}`) ?? document.createElement("div");
  if (!said) fault.remove();
  else if (!fault.isConnected) {
    Object.assign(fault, { id: `fault-${key}`, className: "error" });
    input.closest(".field").append(fault);
  }
  if (fault.textContent !== said) fault.textContent = said;
  if (said) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
  input.setAttribute("aria-describedby", said ? `help-${key} fault-${key}` : `help-${key}`);
}

function edited() {
  text.dispatchEvent(new CustomEvent("policy-edited", { bubbles: true }));
}

if (text) {
  for (const field of fields) field.input.addEventListener("input", () => writeFrom(field));
  text.addEventListener("input", () => {
    showInForm();
    edited();
  });
  document.body.addEventListener("htmx:afterSwap", ({ target }) => {
    if (target.id === "preview") showFaults(target);
  });
  showInForm(null);
}
bindWalk();
