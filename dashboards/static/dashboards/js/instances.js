// The instances page: figures of the one that is open.
import { drawFigures } from "./figure.js";
import { bindWalk } from "./walk.js";

document.body.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id === "detail") drawFigures(event.target);
});
bindWalk();
drawFigures();
