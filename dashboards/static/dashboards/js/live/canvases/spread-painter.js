// How the distribution looks. It is told a scene (see ../spread-scenes.js) and paints it; it remembers nothing.
import { compact } from "../../format.js";
import { boxOf } from "../spread-view.js";

const DASHES = { solid: [], dash: [6, 4], dot: [2, 3], dashdot: [6, 3, 2, 3] };
const SHADES = 24;
// The strongest shade stands for this count at least: where all cells hold a request or two, none shouts.
const LEAST_MOST = 6;
const SLANT = -Math.PI / 3;

export class SpreadPainter {
  #draw;
  #palette;
  #shades;
  #scene;
  #box;

  constructor(context) {
    this.#draw = context;
  }

  setPalette(palette) {
    this.#palette = palette;
    this.#shades = shadesOf(palette);
  }

  paint(scene, { width, height }) {
    const { size } = this.#palette;
    this.#scene = scene;
    this.#box = boxOf(scene, { width, height }, size);
    const draw = this.#draw;
    draw.clearRect(0, 0, width, height);
    draw.lineWidth = 1;
    draw.font = `${size}px ${this.#palette.font}`;
    draw.textBaseline = "middle";
    this.#title(scene.yTitle);
    if (scene.kind === "cells") this.#cells();
    else this.#bars();
    return false;
  }

  // -- cells ---------------------------------------------------------------------------------------------------------
  #cells() {
    const { rows, columns, yTicks, across, points } = this.#scene;
    const { left, top, right, bottom } = this.#box;
    const [wide, tall] = [(right - left) / columns.length, (bottom - top) / (rows.high - rows.low)];
    const y = (bucket) => bottom - (bucket - rows.low) * tall;
    yTicks.values.forEach((at, index) => this.#tickLeft(yTicks.texts[index], y(at)));
    this.#shadeCells(columns, (at) => left + at * wide, y, wide, tall);
    this.#xTicks((at) => left + (at + 0.5) * wide, wide);
    for (const point of points) this.#point(point, left + (point.at + 0.5) * wide, y(point.y), wide);
    for (const mark of across) this.#acrossLine(mark, y(mark.at));
  }

  // Neighbours stand apart by whole pixels, so that edges are sharp.
  #shadeCells(columns, x, y, wide, tall) {
    const draw = this.#draw;
    let most = LEAST_MOST;
    for (const { counts } of columns) for (let index = 1; index < counts.length; index += 2) most = Math.max(most, counts[index]);
    const gap = wide > 4 ? 1 : 0;
    columns.forEach(({ counts }, at) => {
      const [from, to] = [Math.round(x(at)), Math.round(x(at) + wide)];
      for (let index = 0; index < counts.length; index += 2) {
        const [low, high] = [Math.round(y(counts[index])), Math.round(y(counts[index] + 1))];
        draw.fillStyle = this.#shades[Math.round(shadeOf(counts[index + 1], most) * (SHADES - 1))];
        draw.fillRect(from, high, to - from - gap, low - high - (tall > 4 ? 1 : 0));
      }
    });
  }

  #xTicks(x, wide) {
    const { xTicks, isSlanted } = this.#scene;
    const draw = this.#draw;
    const { size } = this.#palette;
    const step = isSlanted ? Math.max(1, Math.ceil((size * 1.3) / wide)) : 1;
    draw.fillStyle = this.#palette.faint;
    xTicks.forEach(({ at, text }, index) => {
      if (index % step !== 0) return;
      if (!isSlanted) {
        draw.textAlign = "center";
        draw.fillText(text, Math.min(x(at), this.#box.right - draw.measureText(text).width / 2), this.#box.bottom + size);
        return;
      }
      draw.save();
      draw.translate(x(at) + 3, this.#box.bottom + 6);
      draw.rotate(SLANT);
      draw.textAlign = "right";
      draw.fillText(text, 0, 0);
      draw.restore();
    });
  }

  #point({ shape }, x, y, wide) {
    const draw = this.#draw;
    const reach = Math.min(10, wide * 0.4);
    draw.strokeStyle = shape === "alert" ? this.#palette.bad : this.#palette.text;
    draw.lineWidth = 2;
    draw.beginPath();
    if (shape === "triangle") {
      const side = Math.min(4, reach);
      draw.moveTo(x - side, y - side);
      draw.lineTo(x + side, y - side);
      draw.lineTo(x, y + side);
      draw.closePath();
      draw.lineWidth = 1.5;
    } else {
      draw.moveTo(x - reach, y);
      draw.lineTo(x + reach, y);
    }
    draw.stroke();
    draw.lineWidth = 1;
  }

  #acrossLine(mark, y) {
    const { left, right } = this.#box;
    this.#line(mark, left, Math.round(y) + 0.5, right, Math.round(y) + 0.5);
    const isRight = mark.isAlert;
    this.#label(mark, isRight ? right - 4 : left + 4, y - this.#palette.size * 0.75, isRight ? "right" : "left");
  }

  // -- bars ----------------------------------------------------------------------------------------------------------
  #bars() {
    const { rows, total, lineAt, xTicks, upright, xTitle } = this.#scene;
    const { left, top, right, bottom } = this.#box;
    const draw = this.#draw;
    const { size } = this.#palette;
    const wide = (right - left) / (rows.high - rows.low);
    const x = (bucket) => left + (bucket - rows.low) * wide;
    const most = niceAbove(Math.max(1, ...total.values()));
    for (const share of [0, 0.5, 1]) {
      const y = bottom - share * (bottom - top);
      draw.strokeStyle = this.#palette.lineSoft;
      this.#segment(left, Math.round(y) + 0.5, right, Math.round(y) + 0.5);
      this.#tickLeft(compact(most * share), y);
    }
    for (const [bucket, count] of total) {
      draw.fillStyle = bucket >= lineAt ? this.#palette.bad : this.#palette.data;
      const [from, to] = [Math.round(x(bucket)), Math.round(x(bucket + 1))];
      const height = (count / most) * (bottom - top);
      draw.fillRect(from, bottom - height, Math.max(1, to - from - 1), height);
    }
    draw.textAlign = "center";
    draw.fillStyle = this.#palette.faint;
    xTicks.values.forEach((at, index) => draw.fillText(xTicks.texts[index], x(at), bottom + size));
    draw.fillStyle = this.#palette.muted;
    draw.fillText(xTitle, (left + right) / 2, bottom + size * 2.5);
    upright.forEach((mark, step) => {
      const at = Math.round(x(mark.at)) + 0.5;
      const y = size * (0.9 + 1.4 * step);
      this.#line(mark, at, y, at, bottom);
      const isRight = mark.at > (rows.low + rows.high) / 2;
      this.#label(mark, at + (isRight ? -5 : 5), y, isRight ? "right" : "left");
    });
  }

  // -- strokes and words ---------------------------------------------------------------------------------------------
  #title(text) {
    const draw = this.#draw;
    draw.save();
    draw.translate(this.#palette.size * 0.9, (this.#box.top + this.#box.bottom) / 2);
    draw.rotate(-Math.PI / 2);
    draw.textAlign = "center";
    draw.fillStyle = this.#palette.muted;
    draw.fillText(text, 0, 0);
    draw.restore();
  }

  #tickLeft(text, y) {
    this.#draw.textAlign = "right";
    this.#draw.fillStyle = this.#palette.faint;
    this.#draw.fillText(text, this.#box.left - 6, y);
  }

  #line({ dash, isAlert }, fromX, fromY, toX, toY) {
    const draw = this.#draw;
    draw.strokeStyle = isAlert ? this.#palette.bad : this.#palette.text;
    draw.lineWidth = isAlert ? 1.5 : 1;
    draw.setLineDash(DASHES[dash]);
    this.#segment(fromX, fromY, toX, toY);
    draw.setLineDash([]);
    draw.lineWidth = 1;
  }

  #label({ name, value, isAlert }, x, y, align) {
    const draw = this.#draw;
    const text = `${isAlert ? "▲ " : ""}${name} ${compact(value)}`;
    const width = draw.measureText(text).width + 6;
    draw.globalAlpha = 0.88;
    draw.fillStyle = this.#palette.surface;
    draw.fillRect(align === "right" ? x - width + 3 : x - 3, y - this.#palette.size * 0.65, width, this.#palette.size * 1.3);
    draw.globalAlpha = 1;
    draw.textAlign = align;
    draw.fillStyle = isAlert ? this.#palette.bad : this.#palette.text;
    draw.fillText(text, x, y);
  }

  #segment(fromX, fromY, toX, toY) {
    this.#draw.beginPath();
    this.#draw.moveTo(fromX, fromY);
    this.#draw.lineTo(toX, toY);
    this.#draw.stroke();
  }
}

// From the deepest shade over the colour of data to that of text.
function shadesOf(palette) {
  const stops = [[0, palette.dataDeep], [0.55, palette.data], [1, palette.text]].map(([at, color]) => [at, channels(color)]);
  return Array.from({ length: SHADES }, (_, step) => {
    const share = step / (SHADES - 1);
    const after = Math.max(1, stops.findIndex(([at]) => at >= share));
    const [[fromAt, from], [toAt, to]] = [stops[after - 1], stops[after]];
    const part = (share - fromAt) / (toAt - fromAt);
    return `rgb(${from.map((channel, index) => Math.round(channel + (to[index] - channel) * part)).join(" ")})`;
  });
}

// Shade says the square root of the count, so that a single request stays visible beside a hundred, and is faint.
function shadeOf(count, most) {
  return (Math.sqrt(count) - 0.8) / (Math.sqrt(most) - 0.8);
}

function channels(hex) {
  return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
}

function niceAbove(value) {
  const decade = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 3, 4, 5, 6, 8, 10].map((step) => step * decade).find((step) => step >= value);
}
