// The headline: six numbers of the last minute, each with its course.
import { NONE, compact, durations, percent, perSecond, ratio } from "../format.js";
import { setText } from "./changes.js";

const WIDTH = 120;
const HEIGHT = 18;

const STATS = {
  rate: { value: (h) => [perSecond(h.requests_per_s)], course: (c) => c.requests },
  ttft: { value: (h) => pair(h.ttft_s.p50, h.ttft_s.p99), course: (c) => c.ttft_s.p50 },
  tpot: { value: (h) => pair(h.tpot_s.p50, h.tpot_s.p99), course: (c) => c.tpot_s.p50 },
  hit: { value: (h) => [percent(h.hit_ratio)], course: (c) => c.hit_ratio },
  load: { value: (h) => [ratio(h.load_max_over_mean)], course: (c) => c.load_max_over_mean },
  score: { value: (h) => [compact(h.score.p95)], course: (c) => c.score.p95 },
};

export class Strip {
  #stats;
  #drawnSecond = null;

  constructor(root) {
    this.#stats = Object.entries(STATS).map(([name, stat]) => {
      const element = root.querySelector(`[data-stat="${name}"]`);
      return { ...stat, text: element.querySelector(".stat-number"), unit: element.querySelector("small"), path: element.querySelector("path") };
    });
  }

  show(frame) {
    for (const { value, text, unit } of this.#stats) {
      const [shown, shownUnit = ""] = value(frame.headline);
      setText(text, shown);
      setText(unit, shownUnit);
    }
    if (frame.second === this.#drawnSecond) return;
    this.#drawnSecond = frame.second;
    const over = frame.columns.filter((column) => column.second < frame.second);
    for (const { course, path } of this.#stats) {
      path.setAttribute("d", line(over.map((c) => [c.second - frame.second, course(c)]), frame.window_s));
    }
  }
}

function pair(low, high) {
  const { text, unit } = durations([low, high]);
  return text === NONE ? [NONE] : [text, unit];
}

// An SVG path; gaps in the data are gaps in the line.
function line(points, windowS) {
  const values = points.map(([, value]) => value).filter((value) => value != null);
  if (values.length < 2) return "";
  const low = Math.min(...values);
  const span = Math.max(...values) - low || 1;
  let path = "";
  let last = null;
  for (const [second, value] of points) {
    if (value == null) {
      last = null;
      continue;
    }
    const x = ((second + windowS) / windowS) * WIDTH;
    const y = HEIGHT - 1 - ((value - low) / span) * (HEIGHT - 2);
    path += `${last !== null && second - last <= 2 ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    last = second;
  }
  return path;
}
