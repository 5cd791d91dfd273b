// Ctrl-K: everything with a name, one list, searched as one types. A text that matches nothing may be a request id.
const MOST = 12;

export function bindPalette() {
  const dialog = document.getElementById("palette");
  const input = document.getElementById("palette-input");
  const list = document.getElementById("palette-list");
  let entries = [];
  let matches = [];
  let active = 0;

  async function open() {
    if (dialog.open) return;
    input.value = "";
    dialog.showModal();
    show();
    const answer = await fetch(dialog.dataset.source);
    if (!answer.ok) return;
    ({ entries } = await answer.json());
    show();
  }

  function show() {
    matches = search(entries, input.value.trim(), dialog.dataset.decisions).slice(0, MOST);
    active = Math.min(active, Math.max(0, matches.length - 1));
    list.replaceChildren(...matches.map(option));
    mark();
  }

  function option(entry, index) {
    const item = document.createElement("li");
    item.id = `palette-${index}`;
    item.setAttribute("role", "option");
    const label = document.createElement("span");
    label.textContent = entry.label;
    const kind = document.createElement("span");
    kind.className = "muted";
    kind.textContent = entry.kind;
    item.append(label, kind);
    item.addEventListener("click", () => go(entry));
    return item;
  }

  function mark() {
    [...list.children].forEach((item, index) => item.setAttribute("aria-selected", String(index === active)));
    if (matches.length) input.setAttribute("aria-activedescendant", `palette-${active}`);
    else input.removeAttribute("aria-activedescendant");
  }

  function go(entry) {
    if (entry) location.assign(entry.url);
  }

  input.addEventListener("input", () => {
    active = 0;
    show();
  });
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && matches.length) {
      active = (active + step + matches.length) % matches.length;
      mark();
    } else if (event.key === "Enter") {
      go(matches[active]);
    } else {
      return;
    }
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey) {
      event.preventDefault();
      open();
    }
  });
  for (const button of document.querySelectorAll("[data-open-palette]")) button.addEventListener("click", open);
}

// Every word must occur; those that begin a label come first.
function search(entries, text, decisions) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = entries.filter(({ label, kind }) => words.every((word) => `${label} ${kind}`.toLowerCase().includes(word)));
  const begins = (entry) => Number(words.length > 0 && entry.label.toLowerCase().startsWith(words[0]));
  found.sort((one, other) => begins(other) - begins(one));
  if (text.length >= 6) found.push({ label: `Explain request ${text}`, kind: "decision", url: `${decisions}${encodeURIComponent(text)}/` });
  return found;
}
