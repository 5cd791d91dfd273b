// The alerts page: the list and the open alert are asked for again when something changes.
import { bindWalk } from "../walk.js";

let shown = Number(document.getElementById("alerts-body").dataset.change);
const chosen = () => document.querySelector("#alerts-body input[name=alert]:checked");

document.addEventListener("pointsman:alerts", (event) => {
  if (event.detail.change === shown) return;
  shown = event.detail.change;
  if (!chosen()) htmx.trigger("#alerts-body", "refresh"); // a choice under way is not taken from anybody
  for (const part of document.querySelectorAll("#alert-state, #alert-story")) htmx.trigger(part, "refresh");
});

document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-check-all]")) return;
  for (const box of document.querySelectorAll("#alerts-body input[name=alert]")) box.checked = event.target.checked;
});

bindWalk();
