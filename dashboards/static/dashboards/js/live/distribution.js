// The distribution of P-token x BS of chosen instances: over time, summed up, or by instance. The last minute comes with
// frames, more of the past from the server's roll-ups; both are drawn alike. Here is when it is drawn and what is pointed
// at; what it shows is in spread-scenes.js, how it looks in canvases/spread-painter.js.
import { PaintedCanvas } from "./painted-canvas.js";
import { byInstance, describe, factsAt, histogram, liveSource, overTime, pastSource } from "./spread-scenes.js";
import { placeAt } from "./spread-view.js";

const SCENES = { time: overTime, histogram, instance: byInstance };
const NO_LINE = { score: null, instances: {} };

export class Distribution {
  #canvas;
  #painted;
  #tip;
  #stamp = "";
  #scene = null;

  // tip: shows { title, facts } at a point, see tip.js.
  constructor(canvas, tip) {
    this.#canvas = canvas;
    this.#tip = tip;
    this.#painted = new PaintedCanvas(canvas, "spread");
    canvas.addEventListener("pointermove", ({ offsetX: x, offsetY: y }) => this.#point({ x, y }));
    canvas.addEventListener("pointerleave", () => tip.showFacts(null));
  }

  // The minute changes by the second and the past by the roll-up, so the scene is made no more often than that.
  show({ frame, past, view: wanted, range }) {
    const view = wanted in SCENES ? wanted : "time";
    const isLive = range.isLive || view === "instance";
    if (!isLive && past === null) return;
    const { score, instances } = past?.line ?? NO_LINE;
    const key = `${view} ${range.key} ${frame.selection.workload} ${frame.selection.model}`;
    const stamp = `${key} ${isLive ? frame.second : past.history.start_s} ${score}`;
    if (stamp === this.#stamp) return;
    const before = this.#stamp.startsWith(`${key} `) ? this.#scene.rows : null;
    this.#stamp = stamp;
    this.#scene = SCENES[view](isLive ? liveSource(frame) : pastSource(past.history), { line: score, instances }, before);
    this.#canvas.setAttribute("aria-label", describe(this.#scene));
    this.#painted.show(this.#scene);
  }

  #point(at) {
    const { size, palette } = this.#painted;
    const place = this.#scene === null ? null : placeAt(at, this.#scene, size, palette.size);
    this.#tip.showFacts(place === null ? null : factsAt(this.#scene, place), at);
  }
}
