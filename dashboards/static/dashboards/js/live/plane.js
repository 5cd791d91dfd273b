// The score plane: P-token across, BS up, both logarithmic; one dot an instance; straight lines of equal score.
// Here is what moves and what can be pointed at; how it looks is in plane-painter.js.
import { placeLabels } from "./labels.js";
import { LogDomain } from "./log-domain.js";
import { isProduct } from "./marks.js";
import { onPaletteChange, readPalette } from "./palette.js";
import { PlanePainter } from "./plane-painter.js";
import { PAD, pixelOf } from "./plane-view.js";
import { Sight } from "./sight.js";

// A decision is jumped to and then read; the present glides from frame to frame.
const PACES = { decision: { ms: 450, ease: (part) => 1 - (1 - part) ** 3 }, now: { ms: 250, ease: (part) => part } };
// A dot that goes further (in decades) hides its label on the way: labels are placed for where dots rest.
const FAR_DECADES = 0.06;
const REACH_PX = 18;
// Thirty pictures a second are smooth, and leave the other half of the screen's for everything else; so many dots that no
// eye follows each are painted half as often.
const LEAST_MS = 30;
const MANY_DOTS = 24;
const IMPORTANCE = { chosen: 0, candidate: 1, out: 2 };
const calm = matchMedia("(prefers-reduced-motion: reduce)");

export class Plane {
  #canvas;
  #painter;
  #sight = new Sight(() => this.#repaint());
  #palette = readPalette();
  #x = new LogDomain({ floor: 0.8, leastSpan: 1.5, margin: 0.12 });
  #y = new LogDomain({ floor: 0.8, leastSpan: 0.9, margin: 0.14 });
  #shownX = { low: 0, high: 1 };
  #shownY = { low: 0, high: 1 };
  #dots = new Map();
  #trail = [];
  #receivedMs = 0;
  #line = null;
  #move = null;
  #pace = PACES.decision;
  #request = null;
  #paintedMs = -Infinity;
  #highlight = "";
  #second = "";
  #size = { width: 0, height: 0 };

  constructor(canvas, { onHover, onPick }) {
    this.#canvas = canvas;
    this.#painter = new PlanePainter(canvas.getContext("2d"));
    new ResizeObserver(() => this.#resize()).observe(canvas);
    this.#sight.watch(canvas);
    onPaletteChange(() => {
      this.#palette = readPalette();
      this.#repaint();
    });
    document.addEventListener("visibilitychange", () => this.#repaint());
    canvas.addEventListener("pointermove", (event) => {
      const dot = this.#dotAt(event.offsetX, event.offsetY);
      canvas.classList.toggle("is-over-dot", dot !== null);
      onHover(dot?.mark ?? null, dot && this.#pixel(dot.at));
    });
    canvas.addEventListener("pointerleave", () => onHover(null, null));
    canvas.addEventListener("click", (event) => onPick(this.#dotAt(event.offsetX, event.offsetY)?.mark ?? null, event.shiftKey));
  }

  // marks: see marks.js; trail: [{ name, pToken, bs, ageS }]; decision: the one whose line is drawn, or null.
  show({ marks, trail, receivedMs, decision, pace }) {
    const now = performance.now();
    this.#settle(now);
    this.#trail = trail;
    this.#receivedMs = receivedMs;
    this.#line = lineOf(decision);
    const refitted = this.#fit(marks, now);
    if (this.#setDots(marks, pace) || refitted) this.#begin(PACES[pace], now);
    this.#repaint();
  }

  // Name of the instance to stress, or ""; and of the one that it is compared with.
  highlight(name, second = "") {
    if (name === this.#highlight && second === this.#second) return;
    [this.#highlight, this.#second] = [name, second];
    this.#placeLabels();
    this.#repaint();
  }

  // Returns whether any dot has somewhere new to go.
  #setDots(marks, pace) {
    const before = this.#dots;
    let moved = marks.length !== before.size;
    this.#dots = new Map();
    for (const mark of marks) {
      const old = before.get(mark.name);
      const to = { x: clamp(mark.x, this.#x), y: clamp(mark.y, this.#y) };
      moved ||= !old || old.to.x !== to.x || old.to.y !== to.y || old.mark.kind !== mark.kind;
      const at = old?.at ?? to;
      const isFar = pace === "decision" && Math.hypot(at.x - to.x, at.y - to.y) > FAR_DECADES;
      this.#dots.set(mark.name, { mark, from: at, at, to, isFar, labelAlpha: old?.labelAlpha ?? 1, place: old?.place ?? null });
    }
    return moved;
  }

  #fit(marks, now) {
    const inRace = marks.filter((mark) => mark.kind !== "out");
    const xs = [...inRace.map((mark) => mark.x), ...this.#trail.map(({ pToken }) => Math.log10(Math.max(1, pToken)))];
    const ys = [...inRace.map((mark) => mark.y), ...this.#trail.map(({ bs }) => Math.log10(Math.max(1, bs)))];
    if (xs.length === 0) return false;
    const changed = [this.#x.fit(Math.min(...xs), Math.max(...xs), now), this.#y.fit(Math.min(...ys), Math.max(...ys), now)];
    return changed.includes(true);
  }

  // -- motion --------------------------------------------------------------------------------------------------------
  #begin(pace, now) {
    const isFirst = this.#shownX.high === 1 && this.#shownX.low === 0;
    this.#pace = pace;
    this.#move = { beganMs: calm.matches || isFirst ? -Infinity : now, x: { ...this.#shownX }, y: { ...this.#shownY } };
    for (const dot of this.#dots.values()) dot.from = dot.at;
    this.#placeLabels();
    this.#settle(now);
  }

  #settle(now) {
    if (!this.#move) return;
    const part = Math.min(1, Math.max(0, (now - this.#move.beganMs) / this.#pace.ms));
    const eased = this.#pace.ease(part);
    for (const dot of this.#dots.values()) {
      dot.at = { x: mix(dot.from.x, dot.to.x, eased), y: mix(dot.from.y, dot.to.y, eased) };
      dot.labelAlpha = dot.isFar ? Math.max(0, part * 2 - 1) : 1;
    }
    this.#shownX = mixRange(this.#move.x, this.#x, eased);
    this.#shownY = mixRange(this.#move.y, this.#y, eased);
    if (part === 1) this.#move = null;
  }

  #repaint() {
    if (this.#request !== null || document.hidden || !this.#sight.has(this.#canvas)) return;
    this.#request = requestAnimationFrame((now) => {
      this.#request = null;
      if (now - this.#paintedMs < (this.#dots.size > MANY_DOTS ? 2 : 1) * LEAST_MS) {
        this.#repaint();
        return;
      }
      this.#paintedMs = now;
      this.#settle(now);
      this.#paint(now);
      if (this.#move) this.#repaint();
    });
  }

  #paint(now) {
    this.#painter.paint(
      {
        size: this.#size, x: this.#shownX, y: this.#shownY, dots: [...this.#dots.values()], trail: this.#trail,
        sinceS: (now - this.#receivedMs) / 1000, highlight: this.#highlight, second: this.#second, line: this.#line,
      },
      this.#palette,
    );
  }

  #resize() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const scale = devicePixelRatio || 1;
    this.#size = { width, height };
    this.#canvas.width = Math.round(width * scale);
    this.#canvas.height = Math.round(height * scale);
    this.#canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
    this.#painter.resized();
    this.#placeLabels();
    this.#repaint();
  }

  // -- geometry ------------------------------------------------------------------------------------------------------
  #pixel(at) {
    return pixelOf(at, this.#size, this.#shownX, this.#shownY);
  }

  #dotAt(x, y) {
    let best = null;
    let reach = REACH_PX;
    for (const dot of this.#dots.values()) {
      const at = this.#pixel(dot.at);
      const distance = Math.hypot(at.x - x, at.y - y);
      if (distance < reach) {
        best = dot;
        reach = distance;
      }
    }
    return best;
  }

  #placeLabels() {
    const isStressed = (dot) => Number(dot.mark.name === this.#highlight || dot.mark.name === this.#second);
    const dots = [...this.#dots.values()].sort(
      (one, other) =>
        isStressed(other) - isStressed(one) || IMPORTANCE[one.mark.kind] - IMPORTANCE[other.mark.kind] || one.mark.rank - other.mark.rank,
    );
    const boxes = dots.map((dot) => ({
      ...pixelOf(dot.to, this.#size, this.#x, this.#y),
      radius: dot.mark.radius * (this.#palette.size / 11),
      width: this.#painter.textWidth(dot.mark.name, this.#palette),
      mustShow: isStressed(dot) === 1 || dot.mark.kind === "chosen",
      place: dot.place,
      dot,
    }));
    const bounds = { left: PAD.left, right: this.#size.width - 2, top: 2, bottom: this.#size.height - PAD.bottom };
    for (const { dot, place } of placeLabels(boxes, bounds)) dot.place = place;
  }
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

function mix(from, to, part) {
  return from + (to - from) * part;
}

function mixRange(from, to, part) {
  return { low: mix(from.low, to.low, part), high: mix(from.high, to.high, part) };
}
