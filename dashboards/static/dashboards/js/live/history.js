// The history: strips, what happened, the compared minutes, and the same in a table.
import { compact, durations, integer, percent, ratio, NONE } from "../format.js";
import { setHidden, setText } from "./changes.js";
import { Compared } from "./compared.js";
import { Courses, clock } from "./courses.js";
import { spanWords } from "./time-range.js";

const APART = [{ color: "apart1", dash: "solid" }, { color: "apart2", dash: "dash" }];
const NEAR_PX_SHARE = 0.015;
const NUMBERS = [
  ["from (UTC)", ({ atS }, spanS) => clock(atS - spanS / 2, true)],
  ["requests", ({ column }) => integer(column.requests)],
  ["TTFT p50", ({ column }) => time(column.ttft_s.p50)],
  ["TTFT p99", ({ column }) => time(column.ttft_s.p99)],
  ["TPOT p50", ({ column }) => time(column.tpot_s.p50)],
  ["TPOT p99", ({ column }) => time(column.tpot_s.p99)],
  ["KV hit", ({ column }) => percent(column.hit_ratio)],
  ["load max / mean", ({ column }) => ratio(loadOf(column))],
  ["P50 of P-token × BS", ({ column }) => compact(column.score.p50)],
  ["P95", ({ column }) => compact(column.score.p95)],
];

export class HistoryCard {
  #root;
  #find;
  #courses;
  #compared;
  #signs;
  #events = [];
  #shown = null;
  #drawnEvents = "";
  #stamp = "";
  #past = null;

  // onThen(moment): a moment was picked to be compared.
  constructor(root, { onThen }) {
    this.#root = root;
    this.#find = (selector) => root.querySelector(selector);
    this.#signs = Object.fromEntries([...root.querySelectorAll("#marks li")].map((item) => [item.dataset.kind, item.textContent]));
    this.#courses = new Courses(this.#find("#courses"), { onPoint: (atS) => this.#point(atS), onPick: onThen });
    this.#compared = new Compared(this.#find("#compared"));
    this.#find("#history-table").addEventListener("toggle", () => this.#fillTable());
  }

  get shown() {
    return this.#shown;
  }

  // past: the server's answer or null; apart: names of the instances set apart; then: Unix seconds or "".
  show({ frame, past, range: asked, apart, then }) {
    const { isLive } = asked;
    const history = past?.history ?? null;
    if (!isLive && history === null) return;
    // It changes by the second, or by the roll-up: frames in between would draw the same.
    const stamp = [asked.key, then, apart, isLive ? frame.second : 0, JSON.stringify(frame.selection)].join(" ");
    if (stamp === this.#stamp && past === this.#past) return;
    [this.#stamp, this.#past] = [stamp, past];
    const range = isLive ? liveRange(frame) : pastRange(history);
    this.#events = (past?.events ?? []).filter((event) => event.at_s >= range.fromS).map((event) => ({ ...event, sign: this.#signs[event.kind], isAlert: event.kind === "alert" }));
    const courses = history === null ? [] : apart.map((name) => history.courses.find((course) => course.instance === name)).filter(Boolean);
    this.#shown = { ...range, apart: courses.map(({ instance, columns }, at) => ({ instance, columns: placed(columns, history.span_s), ...APART[at] })) };
    this.#courses.show({
      ...range, apart: this.#shown.apart, apartGapS: (history?.span_s ?? 10) * 2.5, events: this.#events, isLive,
      thenS: then && then >= range.fromS ? Number(then) : null,
    });
    setText(this.#find("#history-span"), isLive ? "the last minute, by the second" : `${spanWords(range)} UTC, by ${spanText(history.span_s)}`);
    this.#showLegend();
    this.#showEvents();
    this.#compared.show(history?.minutes ?? [], this.#shown.apart);
    this.#fillTable();
  }

  #showLegend() {
    const legend = this.#find("#apart-legend");
    const { apart } = this.#shown;
    const wanted = apart.map(({ instance, color }) => `${color} ${instance}`).join("\n");
    setHidden(legend, apart.length === 0);
    if (legend.dataset.shown === wanted) return;
    legend.dataset.shown = wanted;
    legend.replaceChildren(...apart.map(({ instance, color }) => make("span", `apart-key ${color}`, instance)), make("span", "apart-key fleet", "all instances"));
  }

  // Newest first; one under the crosshair is stressed.
  #showEvents() {
    const list = this.#find("#events");
    const text = JSON.stringify(this.#events);
    setHidden(list, this.#events.length === 0);
    setHidden(this.#find("#no-events"), this.#events.length > 0);
    if (text === this.#drawnEvents) return;
    this.#drawnEvents = text;
    const template = this.#find("#event-template").content.firstElementChild;
    list.replaceChildren(...[...this.#events].reverse().map((event) => fillEvent(template.cloneNode(true), event)));
  }

  #point(atS) {
    const reach = atS === null ? 0 : (this.#shown.toS - this.#shown.fromS) * NEAR_PX_SHARE;
    for (const item of this.#find("#events").children) {
      const isNear = atS !== null && Math.abs(Number(item.dataset.at) - atS) <= reach;
      item.classList.toggle("is-near", isNear);
      if (isNear) item.parentElement.scrollLeft = item.offsetLeft - item.parentElement.offsetLeft - 8;
    }
  }

  #fillTable() {
    const details = this.#find("#history-table");
    if (!details.open || this.#shown === null) return;
    const { columns, gapS, spanS } = this.#shown;
    details.querySelector("thead tr").replaceChildren(...NUMBERS.map(([title], at) => make("th", at ? "number" : "", title)));
    const rows = columns.filter(({ column }) => column.requests > 0).reverse();
    details.querySelector("tbody").replaceChildren(
      ...rows.map((one) => {
        const row = document.createElement("tr");
        row.append(...NUMBERS.map(([, text], at) => make("td", at ? "number" : "", text(one, spanS ?? gapS))));
        return row;
      }),
    );
  }
}

export function loadOf(column) {
  return "load" in column ? column.load : column.load_max_over_mean;
}

function liveRange(frame) {
  const columns = frame.columns
    .filter((column) => column.second < frame.second)
    .map((column) => ({ atS: frame.time_unix_s + column.second - frame.second, column }));
  return { fromS: frame.time_unix_s - frame.window_s, toS: frame.time_unix_s, columns, gapS: 2.5, spanS: 1 };
}

function pastRange({ start_s: fromS, span_s: spanS, columns }) {
  return { fromS, toS: fromS + columns.length * spanS, columns: placed(columns, spanS), gapS: spanS * 2.5, spanS };
}

function placed(columns, spanS) {
  return columns.map((column) => ({ atS: column.start_s + spanS / 2, column }));
}

function fillEvent(item, event) {
  item.dataset.at = event.at_s;
  item.classList.toggle("is-alert", event.isAlert);
  const [link, time] = [item.querySelector("a"), item.querySelector("time")];
  link.href = event.href;
  time.dateTime = new Date(event.at_s * 1000).toISOString();
  time.textContent = clock(event.at_s, true);
  item.querySelector(".event-sign").textContent = event.sign;
  item.querySelector(".event-text").textContent = event.text;
  return item;
}

function spanText(spanS) {
  return spanS % 60 === 0 ? `${spanS / 60} min` : `${spanS} s`;
}

function time(value) {
  const { text, unit } = durations([value]);
  return text === NONE ? NONE : `${text} ${unit}`;
}

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.textContent = text;
  return element;
}
