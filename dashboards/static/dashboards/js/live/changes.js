// Writes to the document, made only where they change something: a write that changes nothing still costs a layout.
// What an element shows is remembered here, since reading it from the document costs more than the rest of a row.
const texts = new WeakMap();

export function setText(element, text) {
  if (texts.get(element) === text) return;
  texts.set(element, text);
  element.textContent = text;
}

// Whether a text was ever set.
export function hasText(element) {
  return texts.has(element);
}

export function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}
