// The lab: charts of the run that is open. What is looked at stands in the address, so that it can be sent to others.
import { drawFigures } from "./figure.js";
import { bindWalk } from "./walk.js";

document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-view]")) return;
  const url = new URL(location.href);
  for (const { name, value } of document.querySelectorAll("[data-view]")) {
    if (value) url.searchParams.set(name, value);
    else url.searchParams.delete(name);
  }
  const address = url.pathname + url.search;
  history.pushState(null, "", address);
  show(address);
});

window.addEventListener("popstate", () => location.reload());

document.body.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id === "detail") drawFigures(event.target);
});

function show(address) {
  window.htmx.ajax("GET", address, { target: "#detail", swap: "innerHTML" });
}

bindWalk();
drawFigures();
