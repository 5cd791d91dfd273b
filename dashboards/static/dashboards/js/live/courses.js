// The strips of the history: TTFT, TPOT, hit ratio and imbalance over the chosen range, of what is selected and of the
// instances set apart, with what happened meanwhile. One crosshair goes through all of them.
import { NONE, durations, percent, ratio } from "../format.js";
import { setText } from "./changes.js";
import { PaintedCanvas } from "./painted-canvas.js";
import { timeAt } from "./strip-view.js";

const P50 = { of: (spread) => spread.p50, dash: "solid" };
const P99 = { of: (spread) => spread.p99, dash: "dash" };
const COURSES = {
  ttft: { read: (column) => column.ttft_s, lines: [P50, P99], format: seconds, floor: 0 },
  tpot: { read: (column) => column.tpot_s, lines: [P50, P99], format: seconds, floor: 0 },
  hit: { read: (column) => column.hit_ratio, lines: [{ of: (value) => value, dash: "solid" }], format: (value) => percent(value, 0), floor: 0, ceiling: 1 },
  load: { read: (column) => ("load" in column ? column.load : column.load_max_over_mean), lines: [{ of: (value) => value, dash: "solid" }], format: ratio, floor: 0, least: 2 },
};

export class Courses {
  #strips;
  #scene = null;
  #atS = null;

  // onPoint(moment or null) while the crosshair moves, onPick(moment) for a click; Unix seconds.
  constructor(root, { onPoint, onPick }) {
    this.#strips = [...root.querySelectorAll("[data-course]")].map((element) => {
      const canvas = element.querySelector("canvas");
      return { ...COURSES[element.dataset.course], canvas, painted: new PaintedCanvas(canvas, "lines"), value: element.querySelector(".course-value") };
    });
    for (const strip of this.#strips) this.#bind(strip, onPoint, onPick);
  }

  // scene: { fromS, toS, gapS, columns: [{ atS, column }], apart: [{ columns, color, dash }], apartGapS, events, thenS, isLive }
  show(scene) {
    this.#scene = scene;
    this.#paint();
  }

  #bind({ canvas, painted }, onPoint, onPick) {
    const moment = (event) => timeAt(event.offsetX, this.#scene, painted.size, painted.palette.size);
    canvas.addEventListener("pointermove", (event) => this.#scene && this.#point(moment(event), onPoint));
    canvas.addEventListener("pointerleave", () => this.#point(null, onPoint));
    canvas.addEventListener("click", (event) => this.#scene && onPick(moment(event)));
  }

  #point(atS, onPoint) {
    this.#atS = atS;
    onPoint(atS);
    this.#paint();
  }

  #paint() {
    for (const strip of this.#strips) this.#paintStrip(strip);
  }

  #paintStrip(strip) {
    if (this.#scene === null) return;
    setText(strip.value, this.#valueOf(strip));
    const { fromS, toS, events, thenS } = this.#scene;
    const series = this.#seriesOf(strip);
    const top = Math.max(strip.least ?? 0, ...series.flatMap(({ points }) => points.map(([, value]) => value ?? 0)));
    const [low, high] = [strip.floor, strip.ceiling ?? niceAbove(top)];
    strip.painted.show({
      fromS, toS, low, high, series, events, thenS, atS: this.#atS,
      values: [low, (low + high) / 2, high].map((value) => strip.format(value)),
      times: [fromS, (fromS + toS) / 2, toS].map(clockOf(this.#scene)),
    });
  }

  #seriesOf(strip) {
    const { columns, apart, gapS, apartGapS } = this.#scene;
    const fleetColor = apart.length ? "faint" : "data";
    const lines = strip.lines.flatMap(({ of, dash }) => [{ points: pointsOf(columns, strip, of), color: fleetColor, dash, weight: dash === "solid" ? 1.5 : 1, gapS }]);
    const [median] = strip.lines;
    for (const { columns: own, color, dash } of apart) {
      lines.push({ points: pointsOf(own, strip, median.of), color, dash, weight: 2, gapS: apartGapS });
    }
    return apart.length ? lines.filter((_, at) => at !== 1 || strip.lines.length === 1) : lines;
  }

  // Beside the title: the numbers under the crosshair, else the newest ones.
  #valueOf(strip) {
    const { columns } = this.#scene;
    const at = this.#atS;
    const found = at === null ? columns.findLast(({ column }) => strip.read(column) != null) : nearest(columns, at);
    if (!found) return NONE;
    const value = strip.read(found.column);
    const texts = strip.lines.map(({ of }) => strip.format(value == null ? null : of(value)));
    return `${texts.join(" / ")}${at === null ? "" : ` at ${clock(found.atS, true)}`}`;
  }
}

export function clock(s, withSeconds = false) {
  return new Date(s * 1000).toISOString().slice(11, withSeconds ? 19 : 16);
}

function clockOf({ isLive, toS }) {
  return isLive ? (s) => (Math.round(toS - s) === 0 ? "now" : `−${Math.round(toS - s)} s`) : (s) => clock(s);
}

function pointsOf(columns, strip, of) {
  return columns.map(({ atS, column }) => {
    const value = strip.read(column);
    return [atS, value == null ? null : of(value)];
  });
}

function nearest(columns, s) {
  let best = null;
  for (const one of columns) if (best === null || Math.abs(one.atS - s) < Math.abs(best.atS - s)) best = one;
  return best;
}

function seconds(value) {
  const { text, unit } = durations([value]);
  return unit ? `${text} ${unit}` : text;
}

// The next of 1, 2, 5, 10, ... at or above a value: an axis that does not twitch.
function niceAbove(value) {
  if (!(value > 0)) return 1;
  const decade = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 5, 7.5, 10].map((step) => step * decade).find((step) => step >= value * 0.999);
}
