// One more condition of a silence, with what open alerts have as suggestions; it is added to the lines as text. Without
// the script the lines are written by hand, so the row is shown by it alone, below them.
const row = document.querySelector("[data-adds-to]");

function bind() {
  const lines = document.getElementById(row.dataset.addsTo);
  const [label, operator, value] = ["label", "operator", "value"].map((name) => document.getElementById(`condition-${name}`));

  function suggest() {
    value.setAttribute("list", `values-of-${label.value.trim()}`);
  }

  function add() {
    const name = label.value.trim();
    if (!name) return label.focus();
    const before = lines.value.trimEnd();
    lines.value = `${before}${before && "\n"}${name}${operator.value}"${value.value}"`;
    lines.dispatchEvent(new Event("input", { bubbles: true }));
    for (const input of [label, value]) input.value = "";
    suggest();
    label.focus();
  }

  label.addEventListener("input", suggest);
  row.querySelector("button").addEventListener("click", add);
  row.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !event.target.matches("input")) return;
    event.preventDefault();
    add();
  });
  lines.closest(".field").after(row);
  row.hidden = false;
}

if (row) bind();
