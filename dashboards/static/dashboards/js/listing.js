// Pages that are a list with something beside it, and figures that the server made.
import { drawFigures } from "./figure.js";
import { bindWalk } from "./walk.js";

document.body.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id === "detail") drawFigures(event.target);
});
bindWalk();
drawFigures();
