// Pages that are a list with something beside it, and figures that the server made.
import { drawFigures } from "./figure.js";
import { bindWalk } from "./walk.js";

document.body.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id === "detail") drawFigures(event.target);
});
// The JSON of a figure came anew beside what a part of the page asked for.
document.body.addEventListener("htmx:oobAfterSwap", (event) => {
  if (event.target.matches("script[id^=figure-]")) drawFigures();
});
bindWalk();
drawFigures();
