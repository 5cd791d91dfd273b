// Minutes side by side: two instances, two times, or both; numbers, and their distributions over one another.
import { NONE, compact, durations, integer, percent, perSecond, ratio } from "../format.js";
import { clock } from "./courses.js";
import { onPaletteChange, readPalette } from "./palette.js";
import { merged, position, ticksOf } from "./score-buckets.js";

const NUMBERS = [
  ["Requests/s", (one) => one.requests_per_s, perSecond],
  ["Errors", (one) => one.errors, integer],
  ["TTFT p50", (one) => one.ttft_s.p50, time],
  ["TTFT p99", (one) => one.ttft_s.p99, time],
  ["TPOT p50", (one) => one.tpot_s.p50, time],
  ["KV hit", (one) => one.hit_ratio, percent],
  ["Mean BS", (one) => one.bs, (value) => ratio(value, 1)],
  ["Load over mean", (one) => one.load, ratio],
  ["P50 of P-token × BS", (one) => one.score.p50, compact],
  ["P95 of P-token × BS", (one) => one.score.p95, compact],
];
const PAD = { left: 8, right: 8, top: 8, bottom: 18 };

export class Compared {
  #root;
  #canvas;
  #minutes = [];
  #drawn = "";

  constructor(root) {
    this.#root = root;
    this.#canvas = root.querySelector("canvas");
    new ResizeObserver(() => this.#paint()).observe(this.#canvas);
    onPaletteChange(() => this.#paint());
  }

  // minutes: as the server compares them; apart: colours of instances.
  show(minutes, apart) {
    const text = JSON.stringify([minutes, apart.map(({ instance }) => instance)]);
    if (text === this.#drawn) return;
    this.#drawn = text;
    this.#minutes = minutes.map((one) => ({ ...one, ...lookOf(one, apart) }));
    this.#root.hidden = minutes.length === 0;
    this.#fill();
    this.#paint();
  }

  #fill() {
    const minutes = this.#minutes;
    const isPair = minutes.length === 2;
    const heads = minutes.map((one) => {
      const head = cell("th", one.instance || "all instances");
      head.append(cell("span", `${clock(one.end_s - 60, true)} to ${clock(one.end_s, true)}`, "apart-time"));
      head.scope = "col";
      head.classList.add("apart-head", one.color);
      return head;
    });
    this.#root.querySelector("thead tr").replaceChildren(cell("th", "one minute, UTC", ""), ...heads, ...(isPair ? [cell("th", "second over first")] : []));
    this.#root.querySelector("tbody").replaceChildren(
      ...NUMBERS.map(([title, read, format]) => {
        const row = document.createElement("tr");
        const values = minutes.map(read);
        row.append(cell("td", title, ""), ...values.map((value) => cell("td", format(value))));
        if (isPair) row.append(cell("td", values[0] && values[1] != null ? `${(values[1] / values[0]).toFixed(2)}×` : NONE));
        return row;
      }),
    );
  }

  #paint() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    if (this.#minutes.length === 0 || width === 0) return;
    const scale = devicePixelRatio || 1;
    [this.#canvas.width, this.#canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
    const draw = this.#canvas.getContext("2d");
    draw.setTransform(scale, 0, 0, scale, 0, 0);
    paintOutlines(draw, { width, height }, this.#minutes, readPalette());
  }
}

// An instance has its colour; the earlier minute is dotted, what is selected as a whole is grey.
function lookOf({ instance, is_then: isThen }, apart) {
  const own = apart.find((one) => one.instance === instance);
  return { color: own?.color ?? (isThen ? "muted" : "data"), dash: isThen ? [2, 3] : own?.dash === "dash" ? [5, 3] : [] };
}

function paintOutlines(draw, { width, height }, minutes, palette) {
  const shares = minutes.map((one) => sharesOf(one.score_counts));
  const buckets = shares.flatMap((one) => [...one.keys()]);
  if (buckets.length === 0) return;
  const [low, high] = [Math.min(...buckets) - 1, Math.max(...buckets) + 2];
  const top = Math.max(...shares.flatMap((one) => [...one.values()]));
  const x = (at) => PAD.left + ((at - low) / (high - low)) * (width - PAD.left - PAD.right);
  const y = (share) => height - PAD.bottom - (share / top) * (height - PAD.top - PAD.bottom);
  draw.font = `${palette.size}px ${palette.font}`;
  draw.textAlign = "center";
  draw.textBaseline = "middle";
  const { values, texts } = ticksOf({ low, high });
  values.forEach((at, index) => {
    draw.fillStyle = palette.faint;
    draw.fillText(texts[index], x(at), height - PAD.bottom / 2);
    draw.fillStyle = palette.lineSoft;
    draw.fillRect(Math.round(x(at)), PAD.top, 1, height - PAD.top - PAD.bottom);
  });
  minutes.forEach((one, index) => {
    draw.strokeStyle = palette[one.color];
    draw.lineWidth = 1.75;
    draw.setLineDash(one.dash);
    draw.beginPath();
    draw.moveTo(x(low), y(0));
    for (let bucket = low; bucket < high; bucket += 1) {
      const level = y(shares[index].get(bucket) ?? 0);
      draw.lineTo(x(bucket), level);
      draw.lineTo(x(bucket + 1), level);
    }
    draw.stroke();
    draw.setLineDash([]);
    const p95 = one.score.p95;
    if (p95 == null) return;
    draw.fillStyle = palette[one.color];
    draw.fillRect(Math.round(x(position(p95))) - 1, height - PAD.bottom - 8, 2, 8);
  });
}

function sharesOf(flat) {
  const total = merged([flat]);
  let count = 0;
  for (const value of total.values()) count += value;
  return new Map([...total].map(([bucket, value]) => [bucket, value / count]));
}

function time(value) {
  const { text, unit } = durations([value]);
  return text === NONE ? NONE : `${text} ${unit}`;
}

function cell(tag, text, className = "number") {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.textContent = text;
  return element;
}
