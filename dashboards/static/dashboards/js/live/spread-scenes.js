// What the distribution of P-token x BS shows: a scene for canvases/spread-painter.js of each view. Axes count buckets and columns.
import { compact, integer } from "../format.js";
import { merged, position, quantile, rowsOf, spanOf, ticksOf } from "./score-buckets.js";

const RANKS = [["P50", 0.5, "dot"], ["P95", 0.95, "dash"], ["P99", 0.99, "dashdot"]];
const MOST_TIME_TICKS = 6;

// source: { columns: [{ title, counts }], ticks: [{ at, text }], marks }, see liveSource and pastSource.
export function overTime(source, { line }, before) {
  const rows = rowsOf(source.columns.map(({ counts }) => counts), line ?? 0, before);
  const across = [...source.marks.filter(({ name }) => name !== "P99"), ...alertMark(line)].map((mark) => ({ ...mark, at: position(mark.value) }));
  return { kind: "cells", rows, columns: source.columns, xTicks: source.ticks, yTicks: ticksOf(rows), across, points: [], isSlanted: false, yTitle: "P-token × BS" };
}

export function byInstance({ instances }, { instances: lines }, before) {
  const rows = rowsOf(instances.map((row) => row.score_counts), Math.max(0, ...Object.values(lines)), before);
  const points = instances.flatMap((row, at) => [
    { at, value: row.score.p50, shape: "dash" },
    { at, value: row.score.p95, shape: "triangle" },
    { at, value: lines[row.name] ?? null, shape: "alert" },
  ]).filter(({ value }) => value != null).map((point) => ({ ...point, y: position(point.value) }));
  const columns = instances.map((row) => ({ title: row.name, counts: row.score_counts, facts: factsOf(row, lines[row.name]) }));
  const xTicks = instances.map((row, at) => ({ at, text: row.name }));
  return { kind: "cells", rows, columns, xTicks, yTicks: ticksOf(rows), across: [], points, isSlanted: instances.length > 8, yTitle: "P-token × BS" };
}

export function histogram(source, { line }, before) {
  const rows = rowsOf(source.columns.map(({ counts }) => counts), line ?? 0, before);
  const total = merged(source.columns.map(({ counts }) => counts));
  const upright = [...source.marks, ...alertMark(line)].map((mark) => ({ ...mark, at: position(mark.value) }));
  return { kind: "bars", rows, total, lineAt: line == null ? Infinity : position(line), xTicks: ticksOf(rows), upright, yTitle: "requests", xTitle: "P-token × BS" };
}

// The frame's minute, by the second.
export function liveSource(frame) {
  const counts = new Map(frame.columns.map((column) => [column.second - frame.second, column.score_counts]));
  const columns = Array.from({ length: frame.window_s }, (_, index) => {
    const s = index - frame.window_s + 1;
    return { title: s === 0 ? "this second" : `${-s} s ago`, counts: counts.get(s) ?? [] };
  });
  const ticks = [50, 40, 30, 20, 10, 0].filter((ago) => ago < frame.window_s).map((ago) => ({ at: frame.window_s - 1 - ago, text: ago ? `−${ago} s` : "now" }));
  const { p50, p95, p99 } = frame.headline.score;
  return { columns, ticks, marks: marksOf([p50, p95, p99]), instances: frame.instances };
}

export function pastSource({ columns, span_s: spanS }) {
  const clock = (s, end) => new Date(s * 1000).toISOString().slice(11, end);
  const total = merged(columns.map((column) => column.score_counts));
  const step = Math.max(1, Math.ceil(columns.length / MOST_TIME_TICKS));
  const ticks = columns.map((column, at) => ({ at, text: clock(column.start_s, 16) })).filter(({ at }) => at % step === Math.floor(step / 2));
  return {
    columns: columns.map((column) => ({ title: `${clock(column.start_s, 19)} to ${clock(column.start_s + spanS, 19)}`, counts: column.score_counts })),
    ticks,
    marks: marksOf(RANKS.map(([, rank]) => quantile(total, rank))),
  };
}

// A sentence of the scene for those who do not see it.
export function describe(scene) {
  const marks = scene.across ?? scene.upright ?? [];
  const texts = marks.map(({ name, value }) => `${name} ${compact(value)}`);
  return `Distribution of P-token × BS${texts.length ? `: ${texts.join(", ")}` : ""}. The history has a table of its quantiles.`;
}

// What lies under the pointer: { title, facts: [[term, value]] } or null.
export function factsAt(scene, { column, bucket }) {
  if (scene.kind === "bars") {
    const count = scene.total.get(bucket);
    return count ? { title: spanOf(bucket), facts: [["requests", integer(count)]] } : null;
  }
  const found = scene.columns[column];
  if (!found) return null;
  const count = countIn(found.counts, bucket);
  return { title: found.title, facts: [[spanOf(bucket), count ? `${integer(count)} requests` : "none"], ...(found.facts ?? [])] };
}

function factsOf(row, line) {
  return [["P50", compact(row.score.p50)], ["P95", compact(row.score.p95)], ["alert above", compact(line)]];
}

function countIn(flat, bucket) {
  for (let index = 0; index < flat.length; index += 2) if (flat[index] === bucket) return flat[index + 1];
  return 0;
}

function alertMark(line) {
  return line == null ? [] : [{ name: "alert above", value: line, dash: "solid", isAlert: true }];
}

function marksOf(values) {
  return RANKS.map(([name, , dash], index) => ({ name, dash, value: values[index] })).filter(({ value }) => value != null);
}
