// The dialog of a model name: rows are added and taken out, and every row says what its weight comes to.
const PERCENT = new Intl.NumberFormat("en", { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 });

function weightOf(row) {
  const weight = Number(row.querySelector("[name=weight]").value);
  return row.querySelector("[name=model]").value.trim() && weight > 0 && Number.isFinite(weight) ? weight : null;
}

function showShares(targets) {
  const rows = [...targets.querySelectorAll("[data-target]")];
  const weights = rows.map(weightOf);
  const total = weights.reduce((sum, weight) => sum + (weight ?? 0), 0);
  rows.forEach((row, place) => {
    const weight = weights[place];
    row.querySelector("[data-share]").textContent = weight === null ? "–" : PERCENT.format(weight / total).replace("%", " %");
    row.querySelector("[data-remove-target]").disabled = rows.length === 1;
  });
}

function addRow(targets) {
  const template = targets.querySelector("template");
  template.before(template.content.cloneNode(true));
  template.previousElementSibling.querySelector("[name=model]").focus();
}

function takeOut(targets, row) {
  const next = row.nextElementSibling.matches("[data-target]") ? row.nextElementSibling : row.previousElementSibling;
  row.remove();
  next.querySelector("[name=model]").focus();
}

document.addEventListener("input", (event) => {
  const targets = event.target.closest("[data-targets]");
  if (targets) showShares(targets);
});

document.addEventListener("click", (event) => {
  const targets = event.target.closest("[data-targets]");
  if (!targets) return;
  if (event.target.closest("[data-add-target]")) addRow(targets);
  else if (event.target.closest("[data-remove-target]")) takeOut(targets, event.target.closest("[data-target]"));
  else return;
  showShares(targets);
});

document.body.addEventListener("htmx:afterSettle", (event) => {
  const targets = event.target.querySelector?.("[data-targets]");
  if (targets) showShares(targets);
});
