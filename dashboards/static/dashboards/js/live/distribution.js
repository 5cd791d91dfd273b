// The distribution of P-token x BS of chosen instances: over time, or by instance. Same buckets as the histograms that
// workers send: four an octave, bucket i holds 2^(i/4) .. 2^((i+1)/4).
import { compact, integer } from "../format.js";
import { drawFigure } from "../figure.js";
import { followSize, whenPlotly } from "../plotly.js";
import { onPaletteChange, readPalette } from "./palette.js";

const PER_OCTAVE = 4;
const LEAST_ROWS = 14;
const PAST_EVERY_MS = 10_000;
const CONFIG = { displayModeBar: false, responsive: true, doubleClick: false, showTips: false };

export class Distribution {
  #stage;
  #plotly = null;
  #view = "time";
  #frame = null;
  #drawn = null;
  #rows = null;
  #pastView = null;
  #pastMs = 0;

  constructor(stage) {
    this.#stage = stage;
    followSize(stage);
    whenPlotly().then((plotly) => {
      this.#plotly = plotly;
      this.#redraw();
    });
    onPaletteChange(() => {
      this.#pastView = null;
      this.#redraw();
    });
    document.addEventListener("visibilitychange", () => this.#redraw());
  }

  setView(view) {
    if (view === this.#view) return;
    this.#view = view;
    this.#redraw();
  }

  // The minute changes by the second, so the chart is drawn by the second, however often frames come.
  show(frame) {
    this.#frame = frame;
    if (this.#drawn !== frame.second && !document.hidden) this.#redraw();
  }

  // Minutes of the past come as a figure from the server, which has the roll-ups and knows what happened.
  async #redrawPast() {
    const [asked, view] = [performance.now(), this.#view];
    if (view === this.#pastView && asked - this.#pastMs < PAST_EVERY_MS) return;
    [this.#pastView, this.#pastMs] = [view, asked];
    const answer = await fetch(`${this.#stage.dataset.past}?minutes=${view}`);
    if (!answer.ok || this.#view !== view) return;
    drawFigure(this.#stage, this.#plotly, await answer.json());
  }

  #redraw() {
    if (this.#frame === null || this.#plotly === null || document.hidden) return;
    this.#drawn = this.#frame.second;
    if (isPast(this.#view)) {
      this.#redrawPast();
      return;
    }
    this.#pastView = null;
    this.#rows = rowsOf(this.#frame, this.#rows);
    const palette = readPalette();
    const figure = this.#view === "time" ? overTime(this.#frame, this.#rows, palette) : byInstance(this.#frame, this.#rows, palette);
    this.#plotly.react(this.#stage, figure.data, figure.layout, CONFIG);
  }
}

function isPast(view) {
  return view !== "time" && view !== "instance";
}

function overTime(frame, rows, palette) {
  const seconds = Array.from({ length: frame.window_s }, (_, index) => index - frame.window_s + 1);
  const columns = new Map(frame.columns.map((column) => [column.second - frame.second, column]));
  const cells = cellsOf(seconds.map((second) => columns.get(second)?.score_counts ?? []), rows);
  const layout = layoutOf(rows, palette);
  layout.xaxis = { ...axis(palette), range: [-frame.window_s + 0.5, 0.5], dtick: 10, ticksuffix: " s" };
  const { p50, p95 } = frame.headline.score;
  layout.shapes = [];
  layout.annotations = [];
  for (const [name, value, dash] of [["P50", p50, "dot"], ["P95", p95, "dash"]]) {
    if (value == null) continue;
    const y = position(value);
    layout.shapes.push({ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: { color: palette.text, width: 1, dash } });
    layout.annotations.push({
      xref: "paper", x: 0, xanchor: "left", y, yanchor: "bottom", showarrow: false,
      text: `${name} ${compact(value)}`, font: { size: 11, color: palette.text }, bgcolor: palette.surface, opacity: 0.85,
    });
  }
  const hover = "%{x} s · %{customdata[0]}<br>%{customdata[1]} requests<extra></extra>";
  return { data: [heat(seconds, rows, cells, palette, hover)], layout };
}

function byInstance(frame, rows, palette) {
  const names = frame.instances.map((row) => row.name);
  const cells = cellsOf(frame.instances.map((row) => row.score_counts), rows);
  const layout = layoutOf(rows, palette);
  layout.xaxis = { ...axis(palette), type: "category", range: [-0.5, names.length - 0.5], tickangle: names.length > 8 ? -60 : 0, automargin: true };
  const hover = "%{x} · %{customdata[0]}<br>%{customdata[1]} requests<extra></extra>";
  const data = [heat(names, rows, cells, palette, hover)];
  for (const [rank, symbol] of [["p50", "line-ew-open"], ["p95", "triangle-down-open"]]) {
    data.push({
      type: "scatter", mode: "markers", x: names,
      y: frame.instances.map((row) => (row.score[rank] == null ? null : position(row.score[rank]))),
      customdata: frame.instances.map((row) => compact(row.score[rank])),
      hovertemplate: `%{x} · ${rank.toUpperCase()} %{customdata}<extra></extra>`,
      marker: { symbol, size: symbol === "line-ew-open" ? (names.length > 24 ? 4 : 12) : (names.length > 24 ? 5 : 7), color: palette.text, line: { color: palette.text, width: 1.5 } },
    });
  }
  return { data, layout };
}

// The visible buckets: all that hold anything, never fewer than LEAST_ROWS, and no jumping back by a row or two.
function rowsOf(frame, before) {
  const buckets = frame.columns.flatMap((column) => column.score_counts.filter((_, index) => index % 2 === 0));
  if (buckets.length === 0) return before ?? { low: 24, high: 24 + 2 * LEAST_ROWS };
  let low = Math.max(0, Math.min(...buckets) - 1);
  let high = Math.max(...buckets) + 2;
  if (high - low < LEAST_ROWS) {
    low = Math.max(0, low - Math.ceil((LEAST_ROWS - high + low) / 2));
    high = low + LEAST_ROWS;
  }
  const close = before && low >= before.low && high <= before.high && high - low > (before.high - before.low) * 0.7;
  return close ? before : { low, high };
}

// Shade says the square root of the count: a single request stays visible beside a hundred.
function cellsOf(columns, { low, high }) {
  const shades = [];
  const labels = [];
  for (let bucket = low; bucket < high; bucket += 1) {
    shades.push(new Array(columns.length).fill(null));
    labels.push(new Array(columns.length).fill(null));
  }
  columns.forEach((counts, at) => {
    for (let index = 0; index < counts.length; index += 2) {
      const [bucket, count] = [counts[index], counts[index + 1]];
      const row = bucket - low;
      if (row < 0 || row >= shades.length) continue;
      shades[row][at] = Math.sqrt(count);
      labels[row][at] = [`${compact(2 ** (bucket / PER_OCTAVE))} to ${compact(2 ** ((bucket + 1) / PER_OCTAVE))}`, integer(count)];
    }
  });
  return { shades, labels };
}

function heat(x, { low, high }, { shades, labels }, palette, hovertemplate) {
  return {
    type: "heatmap",
    x,
    y: Array.from({ length: high - low }, (_, index) => low + index + 0.5),
    z: shades,
    customdata: labels,
    hovertemplate,
    hoverongaps: false,
    showscale: false,
    zmin: 0,
    colorscale: [[0, palette.dataDeep], [0.55, palette.data], [1, palette.text]],
    xgap: 1,
    ygap: 1,
  };
}

function layoutOf({ low, high }, palette) {
  const ticks = [];
  for (let decade = 0; position(10 ** decade) <= high; decade += 1) {
    for (const digit of high - low < 20 ? [1, 3] : [1]) {
      const at = position(digit * 10 ** decade);
      if (at >= low && at <= high) ticks.push([at, compact(digit * 10 ** decade)]);
    }
  }
  return {
    uirevision: "constant",
    showlegend: false,
    margin: { l: 48, r: 12, t: 12, b: 40 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: palette.font, size: 11, color: palette.muted },
    hoverlabel: { bgcolor: palette.raised, bordercolor: palette.line, font: { color: palette.text, family: palette.font, size: 12 } },
    hovermode: "closest",
    dragmode: false,
    yaxis: {
      ...axis(palette), range: [low, high],
      tickvals: ticks.map(([at]) => at), ticktext: ticks.map(([, text]) => text),
      title: { text: "P-token × BS", font: { size: 11, color: palette.muted }, standoff: 4 },
    },
  };
}

function axis(palette) {
  return { fixedrange: true, showgrid: false, zeroline: false, tickfont: { color: palette.faint, size: 11 }, linecolor: palette.line };
}

// Where a value lies among the buckets.
function position(value) {
  return Math.log2(Math.max(1, value)) * PER_OCTAVE;
}
