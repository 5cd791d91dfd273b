// Paints canvases of a page (see ../painted-canvas.js). A canvas comes once, then its size, colours and scenes, in any order;
// it is painted when something is new, and as long as its painter says that something moves.
import { Beat } from "../beat.js";
import { LinesPainter } from "./lines-painter.js";
import { PlanePainter } from "./plane-painter.js";
import { SpreadPainter } from "./spread-painter.js";

const PAINTERS = { plane: PlanePainter, spread: SpreadPainter, lines: LinesPainter };
const pictures = new Map();

class Picture {
  #canvas;
  #draw;
  #painter;
  #beat = new Beat();
  #palette;
  #size = { width: 0, height: 0 };
  #scene = null;

  constructor(canvas, kind) {
    this.#canvas = canvas;
    this.#draw = canvas.getContext("2d");
    this.#painter = new PAINTERS[kind](this.#draw);
  }

  take({ palette, size, scale, scene }) {
    if (palette) {
      this.#palette = palette;
      this.#painter.setPalette(palette);
    }
    if (size) this.#resize(size, scale);
    if (scene !== undefined) this.#scene = scene;
    this.#beat.setInstances(this.#scene?.dots?.length ?? 0);
    this.#beat.ask(this.#paint);
  }

  #resize(size, scale) {
    this.#size = size;
    [this.#canvas.width, this.#canvas.height] = [Math.round(size.width * scale), Math.round(size.height * scale)];
    this.#draw.setTransform(scale, 0, 0, scale, 0, 0);
  }

  #paint = () => {
    if (this.#scene === null || this.#size.width === 0) return;
    const isMoving = this.#painter.paint(this.#scene, this.#size);
    if (isMoving) this.#beat.ask(this.#paint);
  };
}

self.addEventListener("message", ({ data: { id, kind, canvas, isGone, ...news } }) => {
  if (canvas) pictures.set(id, new Picture(canvas, kind));
  if (isGone) pictures.delete(id);
  pictures.get(id)?.take(news);
});
