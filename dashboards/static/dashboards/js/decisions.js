// The decisions page: the plane of the decision that is open.
import { marksOf } from "./live/marks.js";
import { Plane } from "./live/plane.js";
import { Tip } from "./live/tip.js";
import { bindWalk } from "./walk.js";

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
  plane.show({ marks, trail: [], names: [], receivedMs: 0, decision, pace: "decision" });
}

document.body.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id === "detail") showPlane();
});
bindWalk();
showPlane();
