// The score plane: P-token across, BS up, both logarithmic; one dot an instance; straight lines of equal score.
// Here is what moves and what can be pointed at; where dots are on their way is in plane-motion.js, and how it looks in
// canvases/plane-painter.js.
import { placeLabels } from "./labels.js";
import { LogDomain } from "./log-domain.js";
import { isProduct } from "./marks.js";
import { PaintedCanvas } from "./painted-canvas.js";
import { placesAt } from "./plane-motion.js";
import { PAD, pixelOf } from "./plane-view.js";
import { sharedMs } from "./shared-clock.js";
import { NEAR, Sight } from "./sight.js";
import { textWidth } from "./text-width.js";

// A dot that goes further (in decades) hides its label on the way: labels are placed for where dots rest.
const FAR_DECADES = 0.06;
const REACH_PX = 18;
const IMPORTANCE = { chosen: 0, candidate: 1, out: 2 };
const calm = matchMedia("(prefers-reduced-motion: reduce)");

export class Plane {
  #canvas;
  #painted;
  #sight;
  #x = new LogDomain({ floor: 0.8, leastSpan: 1.5, margin: 0.12 });
  #y = new LogDomain({ floor: 0.8, leastSpan: 0.9, margin: 0.14 });
  #marks = new Map();
  #names = [];
  #scene = null;
  #highlight = "";
  #second = "";

  constructor(canvas, { onHover, onPick }) {
    this.#canvas = canvas;
    this.#painted = new PaintedCanvas(canvas, "plane", () => {
      this.#placeLabels();
      this.#repaint();
    });
    this.#sight = new Sight(NEAR, () => this.#repaint(), () => this.#painted.rest());
    this.#sight.watch(canvas);
    document.addEventListener("visibilitychange", () => this.#repaint());
    canvas.addEventListener("pointermove", (event) => {
      const { dot, pixel } = this.#dotAt(event.offsetX, event.offsetY);
      canvas.classList.toggle("is-over-dot", dot !== null);
      onHover(this.#markOf(dot), pixel);
    });
    canvas.addEventListener("pointerleave", () => onHover(null, null));
    canvas.addEventListener("click", (event) => onPick(this.#markOf(this.#dotAt(event.offsetX, event.offsetY).dot), event.shiftKey));
  }

  // marks: see marks.js; trail: as frames have it; names: of the instances that it points to; decision: the one whose line is
  // drawn, or null.
  show({ marks, trail, names, receivedMs, decision, pace }) {
    const nowMs = performance.now();
    const points = pointsOf(trail);
    const refitted = this.#fit(marks, points, nowMs);
    this.#marks = new Map(marks.map((mark) => [mark.name, mark]));
    this.#names = names;
    const isNew = refitted || !this.#goesOn(marks);
    const motion = isNew ? this.#begin(marks, pace, nowMs) : this.#goOn();
    this.#scene = { ...motion, trail: points, receivedMs: sharedMs(receivedMs), line: lineOf(decision) };
    if (isNew) this.#placeLabels();
    this.#repaint();
  }

  // Name of the instance to stress, or ""; and of the one that it is compared with.
  highlight(name, second = "") {
    if (name === this.#highlight && second === this.#second) return;
    [this.#highlight, this.#second] = [name, second];
    this.#placeLabels();
    this.#repaint();
  }

  #fit(marks, points, nowMs) {
    const extremes = [extremesOf(marks, "x", points, 0), extremesOf(marks, "y", points, 1)];
    if (extremes[0].low === Infinity) return false;
    const changed = [this.#x, this.#y].map((domain, axis) => domain.fit(extremes[axis].low, extremes[axis].high, nowMs));
    return changed.includes(true);
  }

  // -- motion --------------------------------------------------------------------------------------------------------
  // Whether no dot has anywhere new to go.
  #goesOn(marks) {
    if (this.#scene === null || marks.length !== this.#scene.dots.length) return false;
    const known = new Map(this.#scene.dots.map((dot) => [dot.name, dot]));
    return marks.every(({ name, kind, x, y }) => {
      const dot = known.get(name);
      return dot?.kind === kind && dot.to.x === clamp(x, this.#x) && dot.to.y === clamp(y, this.#y);
    });
  }

  // On the way that they are on; only how much traffic they have may be new.
  #goOn() {
    const { move, dots } = this.#scene;
    return { move, dots: dots.map((dot) => ({ ...dot, radius: this.#marks.get(dot.name).radius })) };
  }

  #begin(marks, pace, nowMs) {
    const beganMs = sharedMs(nowMs);
    const to = { x: rangeOf(this.#x), y: rangeOf(this.#y) };
    const shown = this.#scene && placesAt(this.#scene, beganMs);
    const old = new Map((shown?.dots ?? []).map((dot) => [dot.name, dot]));
    return {
      move: {
        beganMs: calm.matches || !shown ? -Infinity : beganMs,
        pace,
        x: { from: shown?.x ?? to.x, to: to.x },
        y: { from: shown?.y ?? to.y, to: to.y },
      },
      dots: marks.map(({ name, kind, radius, rank, x, y }) => {
        const rests = { x: clamp(x, this.#x), y: clamp(y, this.#y) };
        const from = old.get(name)?.at ?? rests;
        const isFar = pace === "decision" && Math.hypot(from.x - rests.x, from.y - rests.y) > FAR_DECADES;
        return { name, kind, radius, rank, from, to: rests, isFar, place: old.get(name)?.place ?? null };
      }),
    };
  }

  #repaint() {
    if (this.#scene === null || document.hidden || !this.#sight.has(this.#canvas)) return;
    const rowOf = (name) => (name === "" ? -1 : this.#names.indexOf(name));
    const [highlight, second] = [this.#highlight, this.#second];
    this.#painted.show({ ...this.#scene, highlight, second, ownRows: [rowOf(highlight), rowOf(second)] });
  }

  // -- geometry ------------------------------------------------------------------------------------------------------
  #markOf(dot) {
    return dot && (this.#marks.get(dot.name) ?? null);
  }

  // The dot nearest to a pixel, and the pixel that it is at; nulls where none is near.
  #dotAt(x, y) {
    const found = { dot: null, pixel: null };
    if (this.#scene === null) return found;
    let reach = REACH_PX;
    const shown = placesAt(this.#scene, sharedMs());
    for (const dot of shown.dots) {
      const pixel = pixelOf(dot.at, this.#painted.size, shown.x, shown.y);
      const distance = Math.hypot(pixel.x - x, pixel.y - y);
      if (distance < reach) {
        reach = distance;
        Object.assign(found, { dot, pixel });
      }
    }
    return found;
  }

  #placeLabels() {
    if (this.#scene === null) return;
    const { palette, size } = this.#painted;
    const isStressed = ({ name }) => Number(name === this.#highlight || name === this.#second);
    const dots = [...this.#scene.dots].sort(
      (one, other) => isStressed(other) - isStressed(one) || IMPORTANCE[one.kind] - IMPORTANCE[other.kind] || one.rank - other.rank,
    );
    const boxes = dots.map((dot) => ({
      ...pixelOf(dot.to, size, this.#x, this.#y),
      radius: dot.radius * (palette.size / 11),
      width: textWidth(dot.name, palette),
      mustShow: isStressed(dot) === 1 || dot.kind === "chosen",
      place: dot.place,
      dot,
    }));
    const bounds = { left: PAD.left, right: size.width - 2, top: 2, bottom: size.height - PAD.bottom };
    for (const { dot, place } of placeLabels(boxes, bounds)) dot.place = place;
  }
}

// [log10 P-token, log10 BS, age in seconds, row, ...]: hundreds of points, as they are painted.
function pointsOf(trail) {
  const points = new Float64Array(trail.length * 4);
  trail.forEach(([row, pToken, bs, ageS], at) => points.set([Math.log10(Math.max(1, pToken)), Math.log10(Math.max(1, bs)), ageS, row], at * 4));
  return points;
}

// Of the instances in the race and of the trail; { low: Infinity, high: -Infinity } where there are none.
function extremesOf(marks, axis, points, offset) {
  let [low, high] = [Infinity, -Infinity];
  const take = (value) => { [low, high] = [Math.min(low, value), Math.max(high, value)]; };
  for (const mark of marks) if (mark.kind !== "out") take(mark[axis]);
  for (let at = offset; at < points.length; at += 4) take(points[at]);
  return { low, high };
}

// The chosen one's line of equal score; null when the decision was not made with the plain product.
function lineOf(decision) {
  const winner = decision?.candidates.find((candidate) => candidate.instance === decision.chosen);
  if (!winner?.score || !isProduct(decision)) return null;
  return { a: decision.a, b: decision.b, logScore: Math.log10(winner.score) };
}

// An instance that is out of the race may lie outside the picture; it then stands at its edge.
function clamp(value, { low, high }) {
  const edge = (high - low) * 0.02;
  return Math.min(high - edge, Math.max(low + edge, value));
}

function rangeOf({ low, high }) {
  return { low, high };
}
