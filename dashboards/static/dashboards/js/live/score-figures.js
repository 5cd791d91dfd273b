// Figures of the distribution of P-token x BS, for plotly.js: over time, summed up, and by instance.
import { compact, integer } from "../format.js";
import { merged, position, spanOf, ticksOf } from "./score-buckets.js";

// columns: [{ x, counts }]; line: score of the alert's line or null; xaxis: what is special about it.
export function overTime({ columns, marks, line, xaxis }, rows, palette) {
  const layout = layoutOf(rows, palette);
  layout.xaxis = { ...axis(palette), ...xaxis };
  const across = [...marks.filter(({ name }) => name !== "P99"), ...alertMark(line)];
  layout.shapes = across.map((mark) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: position(mark.value), y1: position(mark.value), line: strokeOf(mark, palette) }));
  layout.annotations = across.map((mark) => ({
    xref: "paper", x: mark.isAlert ? 1 : 0, xanchor: mark.isAlert ? "right" : "left", y: position(mark.value), yanchor: "bottom", ...labelOf(mark, palette),
  }));
  const hover = "%{x} · %{customdata[0]}<br>%{customdata[1]} requests<extra></extra>";
  return { data: [heat(columns.map(({ x }) => x), rows, cellsOf(columns.map(({ counts }) => counts), rows), palette, hover)], layout };
}

export function histogram({ columns, marks, line }, rows, palette) {
  const total = merged(columns.map(({ counts }) => counts));
  const buckets = [...total.keys()];
  const layout = layoutOf(rows, palette);
  const { values, texts } = ticksOf(rows);
  layout.xaxis = { ...axis(palette), range: [rows.low, rows.high], tickvals: values, ticktext: texts, title: { text: "P-token × BS", font: { size: palette.size, color: palette.muted }, standoff: 4 } };
  layout.yaxis = { ...axis(palette), showgrid: true, gridcolor: palette.lineSoft, rangemode: "tozero", title: { text: "requests", font: { size: palette.size, color: palette.muted }, standoff: 4 } };
  layout.margin.t = 28 + 14 * (marks.length + 1);
  const upright = [...marks, ...alertMark(line)];
  layout.shapes = upright.map((mark) => ({ type: "line", yref: "paper", y0: 0, y1: 1, x0: position(mark.value), x1: position(mark.value), line: strokeOf(mark, palette) }));
  layout.annotations = upright.map((mark, step) => ({
    x: position(mark.value), yref: "paper", y: 1, yshift: 14 * (upright.length - step), yanchor: "top",
    xanchor: position(mark.value) > (rows.low + rows.high) / 2 ? "right" : "left", ...labelOf(mark, palette),
  }));
  const bars = {
    type: "bar", x: buckets.map((bucket) => bucket + 0.5), y: [...total.values()], width: 0.9,
    marker: { color: buckets.map((bucket) => (line != null && bucket >= position(line) ? palette.bad : palette.data)) },
    customdata: buckets.map(spanOf), hovertemplate: "%{customdata}<br>%{y} requests<extra></extra>",
  };
  return { data: [bars], layout };
}

export function byInstance({ instances, instanceLines }, rows, palette) {
  const names = instances.map((row) => row.name);
  const layout = layoutOf(rows, palette);
  layout.xaxis = { ...axis(palette), type: "category", range: [-0.5, names.length - 0.5], tickangle: names.length > 8 ? -60 : 0, automargin: true };
  const hover = "%{x} · %{customdata[0]}<br>%{customdata[1]} requests<extra></extra>";
  const data = [heat(names, rows, cellsOf(instances.map((row) => row.score_counts), rows), palette, hover)];
  for (const [rank, symbol] of [["p50", "line-ew-open"], ["p95", "triangle-down-open"]]) data.push(rankMarks(instances, names, rank, symbol, palette));
  data.push(lineMarks(instanceLines, names, palette));
  return { data, layout };
}

function rankMarks(instances, names, rank, symbol, palette) {
  const isMany = names.length > 24;
  const size = symbol === "line-ew-open" ? (isMany ? 4 : 12) : isMany ? 5 : 7;
  return {
    type: "scatter", mode: "markers", x: names,
    y: instances.map((row) => (row.score[rank] == null ? null : position(row.score[rank]))),
    customdata: instances.map((row) => compact(row.score[rank])),
    hovertemplate: `%{x} · ${rank.toUpperCase()} %{customdata}<extra></extra>`,
    marker: { symbol, size, color: palette.text, line: { color: palette.text, width: 1.5 } },
  };
}

// Each instance has a line of its own: a multiple of what was usual there.
function lineMarks(lines, names, palette) {
  const known = names.filter((name) => lines[name] != null);
  return {
    type: "scatter", mode: "markers", x: known, y: known.map((name) => position(lines[name])),
    customdata: known.map((name) => compact(lines[name])), hovertemplate: "%{x} · alert above %{customdata}<extra></extra>",
    marker: { symbol: "line-ew-open", size: names.length > 24 ? 8 : 20, color: palette.bad, line: { color: palette.bad, width: 2 } },
  };
}

function alertMark(line) {
  return line == null ? [] : [{ name: "alert above", value: line, dash: "solid", isAlert: true }];
}

function strokeOf({ dash, isAlert }, palette) {
  return { color: isAlert ? palette.bad : palette.text, width: isAlert ? 1.5 : 1, dash };
}

function labelOf({ name, value, isAlert }, palette) {
  return {
    showarrow: false, text: `${isAlert ? "▲ " : ""}${name} ${compact(value)}`, bgcolor: palette.surface, opacity: 0.9,
    font: { size: palette.size, color: isAlert ? palette.bad : palette.text },
  };
}

// Shade says the square root of the count: a single request stays visible beside a hundred.
function cellsOf(histograms, { low, high }) {
  const shades = [];
  const labels = [];
  for (let bucket = low; bucket < high; bucket += 1) {
    shades.push(new Array(histograms.length).fill(null));
    labels.push(new Array(histograms.length).fill(null));
  }
  histograms.forEach((flat, at) => {
    for (let index = 0; index < flat.length; index += 2) {
      const [bucket, count] = [flat[index], flat[index + 1]];
      const row = bucket - low;
      if (row < 0 || row >= shades.length) continue;
      shades[row][at] = Math.sqrt(count);
      labels[row][at] = [spanOf(bucket), integer(count)];
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

function layoutOf(rows, palette) {
  const { values, texts } = ticksOf(rows);
  return {
    uirevision: "constant",
    showlegend: false,
    margin: { l: 15 + 3 * palette.size, r: 12, t: 12, b: 18 + 2 * palette.size },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: palette.font, size: palette.size, color: palette.muted },
    hoverlabel: { bgcolor: palette.raised, bordercolor: palette.line, font: { color: palette.text, family: palette.font, size: palette.size + 1 } },
    hovermode: "closest",
    dragmode: false,
    shapes: [],
    annotations: [],
    yaxis: {
      ...axis(palette), range: [rows.low, rows.high], tickvals: values, ticktext: texts,
      title: { text: "P-token × BS", font: { size: palette.size, color: palette.muted }, standoff: 4 },
    },
  };
}

function axis(palette) {
  return { fixedrange: true, showgrid: false, zeroline: false, tickfont: { color: palette.faint, size: palette.size }, linecolor: palette.line };
}
