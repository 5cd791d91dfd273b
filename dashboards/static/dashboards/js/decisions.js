// The decisions page: the plane of the decision that is open, and keys to walk the list.
import { bindKeys } from "./keys.js";
import { marksOf } from "./live/marks.js";
import { Plane } from "./live/plane.js";
import { Tip } from "./live/tip.js";

function showPlane() {
  const canvas = document.getElementById("decision-canvas");
  if (!canvas) return;
  const decision = JSON.parse(document.getElementById("decision-document").textContent);
  const tip = new Tip(document.getElementById("decision-tip"));
  const plane = new Plane(canvas, {
    onHover: (mark, at) => {
      tip.show(mark, at);
      plane.highlight(mark?.name ?? "");
    },
    onPick: () => {},
  });
  const marks = marksOf({ instances: [] }, decision, "decision");
  plane.show({ marks, trail: [], receivedMs: 0, decision, pace: "decision" });
}

function select(link) {
  for (const row of document.querySelectorAll("[data-walk] tr[aria-selected]")) row.removeAttribute("aria-selected");
  link.closest("tr").setAttribute("aria-selected", "true");
}

function step(by) {
  const links = [...document.querySelectorAll("[data-walk] .row-link")];
  const at = links.findIndex((link) => link.closest("tr").getAttribute("aria-selected") === "true");
  const next = links[at === -1 ? 0 : Math.min(links.length - 1, Math.max(0, at + by))];
  next?.focus();
  next?.click();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest(".row-link");
  if (link) select(link);
});
document.body.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id === "detail") showPlane();
});
bindKeys({ j: () => step(1), k: () => step(-1), "/": () => document.querySelector("[data-search]").focus() });
showPlane();
