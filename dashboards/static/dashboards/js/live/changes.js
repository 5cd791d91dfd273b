// Writes to the document, made only where they change something: a write that changes nothing still costs a layout.
// What an element shows is remembered here, since reading it from the document costs more than the rest of a row.
const shown = new WeakMap();

// The text is the element's only content. Its node stays and only its data changes: a new node would have to be styled.
export function setText(element, text) {
  const old = shown.get(element);
  if (old?.text === text) return;
  if (old?.node && text !== "") {
    old.node.data = old.text = text;
    return;
  }
  element.textContent = text;
  shown.set(element, { text, node: element.firstChild });
}

export function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

export function setHidden(element, isHidden) {
  if (element.hidden !== isHidden) element.hidden = isHidden;
}

export function setClass(element, name, isSet) {
  if (element.classList.contains(name) !== isSet) element.classList.toggle(name, isSet);
}
