// The distribution of P-token x BS of chosen instances: over time, summed up, or by instance. The last minute comes with
// frames, more of the past from the server's roll-ups; both are drawn alike. Here is when it is drawn and what is pointed
// at; what it shows is in spread-scenes.js, how it looks in spread-painter.js.
import { onPaletteChange, readPalette } from "./palette.js";
import { Sight } from "./sight.js";
import { SpreadPainter } from "./spread-painter.js";
import { byInstance, describe, factsAt, histogram, liveSource, overTime, pastSource } from "./spread-scenes.js";

const SCENES = { time: overTime, histogram, instance: byInstance };
const NO_LINE = { score: null, instances: {} };

export class Distribution {
  #canvas;
  #painter;
  #sight = new Sight(() => this.#paint());
  #tip;
  #shown = null;
  #stamp = "";
  #scene = null;
  #size = { width: 0, height: 0 };

  // tip: shows { title, facts } at a point, see tip.js.
  constructor(canvas, tip) {
    this.#canvas = canvas;
    this.#tip = tip;
    this.#painter = new SpreadPainter(canvas.getContext("2d"));
    this.#painter.setPalette(readPalette());
    new ResizeObserver(() => this.#resize()).observe(canvas);
    this.#sight.watch(canvas);
    onPaletteChange(() => {
      this.#painter.setPalette(readPalette());
      this.#paint();
    });
    document.addEventListener("visibilitychange", () => this.#redraw());
    canvas.addEventListener("pointermove", ({ offsetX: x, offsetY: y }) => this.#point({ x, y }));
    canvas.addEventListener("pointerleave", () => tip.showFacts(null));
  }

  // Returns whether there was anything new to draw.
  show({ frame, past, view, range }) {
    this.#shown = { frame, past, view: view in SCENES ? view : "time", range };
    return this.#redraw();
  }

  // The minute changes by the second and the past by the roll-up, so the scene is made no more often than that.
  #redraw() {
    if (this.#shown === null || document.hidden) return false;
    const { frame, past, view, range } = this.#shown;
    const isLive = range.isLive || view === "instance";
    if (!isLive && past === null) return false;
    const { score, instances } = past?.line ?? NO_LINE;
    const key = `${view} ${range.key} ${frame.selection.workload} ${frame.selection.model}`;
    const stamp = `${key} ${isLive ? frame.second : past.history.start_s} ${score}`;
    if (stamp === this.#stamp) return false;
    const before = this.#stamp.startsWith(`${key} `) ? this.#scene.rows : null;
    this.#stamp = stamp;
    this.#scene = SCENES[view](isLive ? liveSource(frame) : pastSource(past.history), { line: score, instances }, before);
    this.#canvas.setAttribute("aria-label", describe(this.#scene));
    this.#paint();
    return true;
  }

  #paint() {
    const isSeen = this.#size.width > 0 && !document.hidden && this.#sight.has(this.#canvas);
    if (isSeen && this.#scene !== null) this.#painter.paint(this.#scene, this.#size);
  }

  #resize() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const scale = devicePixelRatio || 1;
    this.#size = { width, height };
    [this.#canvas.width, this.#canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
    this.#canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
    this.#paint();
  }

  #point(at) {
    const place = this.#scene === null ? null : this.#painter.at(at.x, at.y);
    this.#tip.showFacts(place === null ? null : factsAt(this.#scene, place), at);
  }
}
