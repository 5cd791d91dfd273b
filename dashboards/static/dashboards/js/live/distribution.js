// The distribution of P-token x BS of chosen instances: over time, summed up, or by instance. The last minute comes with
// frames, more of the past from the server's roll-ups; both are drawn alike.
import { followSize, whenPlotly } from "../plotly.js";
import { onPaletteChange, readPalette } from "./palette.js";
import { merged, quantile, rowsOf } from "./score-buckets.js";
import { byInstance, histogram, overTime } from "./score-figures.js";

const CONFIG = { displayModeBar: false, responsive: true, doubleClick: false, showTips: false };
const FIGURES = { time: overTime, histogram, instance: byInstance };
const RANKS = [["P50", 0.5, "dot"], ["P95", 0.95, "dash"], ["P99", 0.99, "dashdot"]];

export class Distribution {
  #stage;
  #plotly = null;
  #palette = readPalette();
  #view = "time";
  #minutes = "1";
  #frame = null;
  #past = null;
  #drawn = "";
  #rows = null;

  constructor(stage) {
    this.#stage = stage;
    followSize(stage);
    whenPlotly().then((plotly) => {
      this.#plotly = plotly;
      this.#redraw();
    });
    onPaletteChange(() => {
      this.#palette = readPalette();
      this.#drawn = "";
      this.#redraw();
    });
    document.addEventListener("visibilitychange", () => this.#redraw());
  }

  show({ frame, past, view, minutes }) {
    if (view !== this.#view || minutes !== this.#minutes) this.#rows = null;
    [this.#frame, this.#past, this.#view, this.#minutes] = [frame, past, view in FIGURES ? view : "time", minutes];
    this.#redraw();
  }

  // The minute changes by the second and the past by the roll-up, so the chart is drawn no more often than that.
  #redraw() {
    if (this.#frame === null || this.#plotly === null || document.hidden) return;
    const { history, line } = this.#past ?? {};
    const isLive = this.#minutes === "1" || this.#view === "instance";
    if (!isLive && !history) return;
    const stamp = [this.#view, this.#minutes, isLive ? this.#frame.second : history.start_s, JSON.stringify(this.#frame.selection), line?.score].join(" ");
    if (stamp === this.#drawn) return;
    this.#drawn = stamp;
    const source = { ...(isLive ? liveSource(this.#frame) : pastSource(history)), instances: this.#frame.instances, line: line?.score ?? null, instanceLines: line?.instances ?? {} };
    const [histograms, lines] = this.#view === "instance"
      ? [source.instances.map((row) => row.score_counts), Object.values(source.instanceLines)]
      : [source.columns.map(({ counts }) => counts), [source.line ?? 0]];
    this.#rows = rowsOf(histograms, Math.max(...lines, 0), this.#rows);
    const figure = FIGURES[this.#view](source, this.#rows, this.#palette);
    this.#plotly.react(this.#stage, figure.data, figure.layout, CONFIG);
  }
}

function liveSource(frame) {
  const counts = new Map(frame.columns.map((column) => [column.second - frame.second, column.score_counts]));
  const columns = Array.from({ length: frame.window_s }, (_, index) => {
    const x = index - frame.window_s + 1;
    return { x, counts: counts.get(x) ?? [] };
  });
  const { p50, p95, p99 } = frame.headline.score;
  return { columns, marks: marksOf([p50, p95, p99]), xaxis: { range: [-frame.window_s + 0.5, 0.5], dtick: 10, ticksuffix: " s" } };
}

function pastSource({ columns, span_s: spanS }) {
  const total = merged(columns.map((column) => column.score_counts));
  return {
    columns: columns.map((column) => ({ x: new Date((column.start_s + spanS / 2) * 1000).toISOString().slice(0, 19).replace("T", " "), counts: column.score_counts })),
    marks: marksOf(RANKS.map(([, rank]) => quantile(total, rank))),
    xaxis: { type: "date", tickformat: "%H:%M" },
  };
}

function marksOf(values) {
  return RANKS.map(([name, , dash], index) => ({ name, dash, value: values[index] })).filter(({ value }) => value != null);
}
