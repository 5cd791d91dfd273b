// How the score plane looks. It is told a scene and paints it; it remembers nothing.
import { compact } from "../../format.js";
import { isoLine, isoLines } from "../iso-lines.js";
import { logTicks } from "../log-domain.js";
import { sharedMs } from "../shared-clock.js";
import { placesAt } from "../plane-motion.js";
import { PAD, pixelOf } from "../plane-view.js";

const PRODUCT = { a: 1, b: 1 };
const SPARK_S = 1.5;
const WINDOW_S = 60;
const LAYER = { out: 0, candidate: 1, chosen: 2 };

export class PlanePainter {
  #draw;
  #palette;
  #scene;
  #size;
  #font = "";

  constructor(context) {
    this.#draw = context;
  }

  setPalette(palette) {
    this.#palette = palette;
  }

  // scene: { move, dots, trail, receivedMs, highlight, second, ownRows, line }, see plane.js. Returns whether it goes on moving.
  paint(scene, size) {
    const nowMs = sharedMs();
    const shown = placesAt(scene, nowMs);
    this.#scene = { ...scene, ...shown, sinceS: (nowMs - scene.receivedMs) / 1000 };
    this.#size = size;
    // A canvas that was resized has forgotten its font.
    this.#font = "";
    const draw = this.#draw;
    const { width, height } = size;
    draw.clearRect(0, 0, width, height);
    draw.textBaseline = "middle";
    draw.lineWidth = 1;
    this.#setFont();
    this.#axes();
    draw.save();
    draw.beginPath();
    draw.rect(PAD.left, PAD.top, width - PAD.left - PAD.right, height - PAD.top - PAD.bottom);
    draw.clip();
    this.#isoLines();
    this.#trail();
    draw.restore();
    this.#dots();
    return !shown.isOver;
  }

  #axes() {
    const { x, y } = this.#scene;
    const { width, height } = this.#size;
    const draw = this.#draw;
    draw.textAlign = "center";
    for (const { at, value, labelled } of logTicks(x.low, x.high)) {
      const across = Math.round(this.#pixel(at, y.low).x) + 0.5;
      this.#stroke(this.#palette.lineSoft, { x: across, y: PAD.top }, { x: across, y: height - PAD.bottom });
      if (labelled) this.#text(compact(value), across, height - PAD.bottom + 12, this.#palette.faint);
    }
    this.#text("P-token (queued + new prefill tokens)", (PAD.left + width - PAD.right) / 2, height - 10, this.#palette.muted);
    draw.textAlign = "right";
    for (const { at, value, labelled } of logTicks(y.low, y.high)) {
      const up = Math.round(this.#pixel(x.low, at).y) + 0.5;
      this.#stroke(this.#palette.lineSoft, { x: PAD.left, y: up }, { x: width - PAD.right, y: up });
      if (labelled) this.#text(compact(value), PAD.left - 8, up, this.#palette.faint);
    }
    draw.save();
    draw.translate(10, (PAD.top + height - PAD.bottom) / 2);
    draw.rotate(-Math.PI / 2);
    draw.textAlign = "center";
    this.#text("BS", 0, 0, this.#palette.muted);
    draw.restore();
  }

  #isoLines() {
    const { line, x, y } = this.#scene;
    const draw = this.#draw;
    draw.textAlign = "left";
    for (const { level, from, to } of isoLines(line ?? PRODUCT, x, y)) {
      const [start, end] = [this.#pixel(...from), this.#pixel(...to)];
      this.#stroke(this.#palette.line, start, end);
      this.#textAlong(compact(level), start, end);
    }
    const own = line && isoLine(line, line.logScore, x, y);
    if (!own) return;
    draw.setLineDash([2, 4]);
    draw.lineWidth = 1.5;
    draw.lineCap = "round";
    this.#stroke(this.#palette.chosen, this.#pixel(...own.from), this.#pixel(...own.to));
    draw.setLineDash([]);
    draw.lineWidth = 1;
  }

  // The last minute's choices, fading with age; the newest are amber sparks.
  #trail() {
    const { trail, sinceS, highlight, ownRows } = this.#scene;
    const draw = this.#draw;
    for (let at = 0; at < trail.length; at += 4) {
      const age = trail[at + 2] + sinceS;
      if (age > WINDOW_S) continue;
      const center = this.#pixel(trail[at], trail[at + 1]);
      const isSpark = age < SPARK_S;
      const isOwn = trail[at + 3] >= 0 && ownRows.includes(trail[at + 3]);
      const faint = (highlight ? 0.14 : 0.45) * (1 - age / (WINDOW_S * 1.25));
      draw.globalAlpha = isSpark ? 0.9 - (0.5 * age) / SPARK_S : isOwn ? 0.85 : faint;
      this.#disc(center, this.#zoom * (isSpark ? 2.4 : isOwn ? 2.2 : 1.7), isSpark ? this.#palette.chosen : this.#palette.data);
    }
    draw.globalAlpha = 1;
  }

  #dots() {
    const { highlight, second } = this.#scene;
    const stressed = (dot) => Number(dot.name === highlight || dot.name === second);
    const dots = [...this.#scene.dots].sort(
      (one, other) => stressed(one) - stressed(other) || LAYER[one.kind] - LAYER[other.kind],
    );
    for (const dot of dots) this.#dot(dot, stressed(dot));
    for (const dot of dots) this.#label(dot, stressed(dot));
  }

  #dot({ name, kind, radius, at }, isStressed) {
    const draw = this.#draw;
    const center = this.#pixel(at.x, at.y);
    const isChosen = kind === "chosen";
    draw.globalAlpha = this.#scene.highlight && !isStressed && !isChosen ? 0.45 : 1;
    draw.lineWidth = 1.5;
    const isOut = kind === "out";
    this.#disc(center, radius * this.#zoom, isOut ? this.#palette.surface : isChosen ? this.#palette.chosen : this.#palette.data);
    draw.strokeStyle = isOut ? this.#palette.faint : this.#palette.surface;
    draw.stroke();
    if (isStressed || isChosen) {
      draw.beginPath();
      draw.arc(center.x, center.y, radius * this.#zoom + 4, 0, 2 * Math.PI);
      draw.strokeStyle = isChosen ? this.#palette.chosen : this.#palette.text;
      if (name === this.#scene.second) draw.setLineDash([3, 3]);
      draw.stroke();
      draw.setLineDash([]);
    }
    draw.globalAlpha = 1;
    draw.lineWidth = 1;
  }

  #label({ name, kind, at, place, labelAlpha }, isStressed) {
    if (!place) return;
    const draw = this.#draw;
    const center = this.#pixel(at.x, at.y);
    const isChosen = kind === "chosen";
    const [x, y] = [center.x + place.dx, center.y + place.dy];
    draw.globalAlpha = isStressed || isChosen ? 1 : labelAlpha;
    if (place.leader) {
      this.#stroke(this.#palette.faint, mix(center, { x, y }, 0.35), mix(center, { x, y }, 0.9));
    }
    draw.textAlign = place.align;
    this.#setFont(isStressed || isChosen ? "600" : "400");
    draw.strokeStyle = this.#palette.surface;
    draw.lineWidth = 3;
    draw.lineJoin = "round";
    draw.strokeText(name, x, y);
    draw.lineWidth = 1;
    this.#text(name, x, y, this.#labelColor(kind, isStressed));
    draw.globalAlpha = 1;
  }

  #labelColor(kind, isStressed) {
    if (kind === "chosen") return this.#palette.chosen;
    if (isStressed) return this.#palette.text;
    return kind === "out" ? this.#palette.faint : this.#palette.muted;
  }

  // Written along the line and above it, so that it cannot be read as a tick of an axis.
  #textAlong(text, start, end) {
    const draw = this.#draw;
    if (Math.hypot(end.x - start.x, end.y - start.y) < 80) return;
    draw.save();
    draw.translate(start.x, start.y);
    draw.rotate(Math.atan2(end.y - start.y, end.x - start.x));
    this.#text(text, 10, -7, this.#palette.faint);
    draw.restore();
  }

  #pixel(x, y) {
    return pixelOf({ x, y }, this.#size, this.#scene.x, this.#scene.y);
  }

  // Marks grow with the text.
  get #zoom() {
    return this.#palette.size / 11;
  }

  // Setting a font costs much, so it is set only where it changes.
  #setFont(weight = "400") {
    const font = `${weight} ${this.#palette.size}px ${this.#palette.font}`;
    if (font === this.#font) return;
    this.#draw.font = this.#font = font;
  }

  #disc({ x, y }, radius, color) {
    this.#draw.fillStyle = color;
    this.#draw.beginPath();
    this.#draw.arc(x, y, radius, 0, 2 * Math.PI);
    this.#draw.fill();
  }

  #stroke(color, from, to) {
    this.#draw.strokeStyle = color;
    this.#draw.beginPath();
    this.#draw.moveTo(from.x, from.y);
    this.#draw.lineTo(to.x, to.y);
    this.#draw.stroke();
  }

  #text(text, x, y, color) {
    this.#draw.fillStyle = color;
    this.#draw.fillText(text, x, y);
  }
}

function mix(from, to, part) {
  return { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part };
}
