// The table: the same instances in numbers. Rows are kept and only their texts change; the order stands still unless a
// person sorts by something that moves. Rows in the window follow every frame; the others take turns.
import { NONE, age, compact, durations, integer, percent, perSecond } from "../format.js";
import { hasText, setAttribute, setText } from "./changes.js";
import { Sight } from "./sight.js";

const names = new Intl.Collator("en", { numeric: true });
const COLUMNS = [
  { key: "name", sort: (one) => one.name },
  { key: "hit", sort: (one) => one.candidate?.hit_tokens, text: (one) => short(one.candidate?.hit_tokens) },
  { key: "new", sort: (one) => one.candidate?.new_tokens, text: (one) => short(one.candidate?.new_tokens) },
  { key: "queued", sort: (one) => one.candidate?.queued_prefill_tokens, text: (one) => short(one.candidate?.queued_prefill_tokens) },
  { key: "p", sort: (one) => one.candidate?.p_token, text: (one) => short(one.candidate?.p_token) },
  { key: "bs", sort: (one) => one.candidate?.bs, text: (one) => short(one.candidate?.bs) },
  { key: "score", sort: (one) => one.candidate?.score, text: (one) => one.candidate?.filtered ?? short(one.candidate?.score) },
  { key: "times", sort: (one) => one.timesChosen, text: (one) => (one.timesChosen == null ? NONE : `${one.timesChosen.toFixed(1)}×`) },
  { key: "now-bs", sort: (one) => one.row.bs, text: (one) => short(one.row.bs) },
  { key: "now-queued", sort: (one) => one.row.queued_prefill_tokens, text: (one) => short(one.row.queued_prefill_tokens) },
  { key: "kv", sort: (one) => one.row.kv_use },
  { key: "rate", sort: (one) => one.row.requests_per_s, text: (one) => perSecond(one.row.requests_per_s) },
  { key: "ttft", sort: (one) => one.row.ttft_s.p50, text: (one) => ttft(one.row) },
  { key: "p95", sort: (one) => one.row.score.p95, text: (one) => compact(one.row.score.p95) },
  { key: "age", sort: (one) => one.row.reported_age_s, text: (one) => age(one.row.reported_age_s) },
];

// Of the rows out of sight, each frame fills every so manieth: all of them follow within a second.
const TURNS = 4;

export class InstanceTable {
  #table;
  #body;
  #template;
  #rows = new Map();
  #sight = new Sight();
  #order = "";
  #sort = { sort: "name", order: "ascending" };
  #drawnSecond = null;
  #mostBs = 1;
  #letters = 0;
  #turn = 0;

  constructor(table, { onSort, onHover, onPick }) {
    this.#table = table;
    this.#body = table.tBodies[0];
    this.#template = table.querySelector("template");
    table.tHead.addEventListener("click", (event) => {
      const header = event.target.closest("button.sort")?.closest("th");
      if (header) onSort(header.dataset.key, header.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending");
    });
    this.#body.addEventListener("pointerover", (event) => onHover(nameAt(event)));
    this.#body.addEventListener("pointerleave", () => onHover(null));
    this.#body.addEventListener("focusin", (event) => onHover(nameAt(event)));
    this.#body.addEventListener("focusout", () => onHover(null));
    this.#body.addEventListener("click", (event) => onPick(nameAt(event), event.shiftKey));
    // Shift and a click would select text.
    this.#body.addEventListener("mousedown", (event) => { if (event.shiftKey) event.preventDefault(); });
  }

  // The same entries in the order of the table.
  sorted(entries) {
    return sortEntries(entries, this.#sort.sort, this.#sort.order);
  }

  // entries: [{ name, row, candidate, timesChosen, kind }] of the instances to list; isWhole: leave none for later.
  show(entries, { sort, order, second, isWhole }) {
    this.#sort = { sort, order };
    const sorted = sortEntries(entries, sort, order);
    const kept = new Set(sorted.map((entry) => entry.name));
    for (const [name, row] of this.#rows) {
      if (!kept.has(name)) {
        this.#sight.forget(row.element);
        row.element.remove();
        this.#rows.delete(name);
      }
    }
    const isNewSecond = second !== this.#drawnSecond;
    this.#turn = (this.#turn + 1) % TURNS;
    if (isNewSecond) this.#mostBs = Math.max(1, ...sorted.flatMap(({ row }) => row.bs_course.map((bs) => bs ?? 0)));
    sorted.forEach((entry, at) => {
      const row = this.#rowFor(entry.name);
      const isSeen = this.#sight.has(row.element);
      if (isSeen || isWhole || at % TURNS === this.#turn) this.#fill(row, entry, isNewSecond || isWhole || !isSeen);
    });
    this.#makeRoom(sorted);
    const wanted = sorted.map((entry) => entry.name).join("\n");
    if (wanted !== this.#order) {
      const focused = document.activeElement;
      this.#body.append(...sorted.map((entry) => this.#rows.get(entry.name).element));
      if (this.#body.contains(focused)) focused.focus();
      this.#order = wanted;
    }
    this.#drawnSecond = second;
    for (const header of this.#table.tHead.querySelectorAll("th[data-key]")) {
      setAttribute(header, "aria-sort", header.dataset.key === sort ? order : "none");
    }
  }

  // apart: the chosen instance and the one it is compared with.
  highlight(name, apart) {
    for (const [key, { element }] of this.#rows) {
      setAttribute(element, "aria-selected", String(apart.includes(key)));
      element.classList.toggle("is-second", key === apart[1]);
      element.classList.toggle("is-highlighted", key === name);
    }
  }

  names() {
    return this.#order ? this.#order.split("\n") : [];
  }

  focus(name) {
    this.#rows.get(name)?.element.focus({ preventScroll: false });
  }

  #rowFor(name) {
    let row = this.#rows.get(name);
    if (!row) {
      const element = this.#template.content.firstElementChild.cloneNode(true);
      element.dataset.name = name;
      row = { element, cells: Object.fromEntries([...element.querySelectorAll("[data-cell]")].map((cell) => [cell.dataset.cell, cell])) };
      this.#rows.set(name, row);
      this.#body.append(element);
      this.#sight.watch(element);
    }
    return row;
  }

  // The column of names is as wide as the longest one needs; it never shrinks, so that nothing jumps.
  #makeRoom(entries) {
    const letters = Math.max(this.#letters, ...entries.map(({ name, row }) => name.length + wordOf(row).length));
    if (letters === this.#letters) return;
    this.#letters = letters;
    this.#table.style.setProperty("--name-letters", letters);
  }

  // isBySecond: what would be read no better four times a second is filled as well: ages, and courses, whose scale is the
  // same in all rows so that they can be compared.
  #fill({ element, cells }, entry, isBySecond) {
    element.classList.toggle("is-chosen", entry.kind === "chosen");
    element.classList.toggle("is-out", entry.kind === "out");
    const state = stateOf(entry.row);
    setText(cells.name, entry.name);
    if (cells.state.dataset.state !== state) {
      cells.state.dataset.state = state;
      cells.state.title = state;
    }
    setText(cells.word, wordOf(entry.row));
    for (const { key, text } of COLUMNS) {
      if (text && (key !== "age" || isBySecond || !hasText(cells.age))) setText(cells[key], text(entry));
    }
    if (isBySecond) setAttribute(cells.course, "d", courseLine(entry.row.bs_course, this.#mostBs));
    setText(cells.kv, percent(entry.row.kv_use, 0));
    const share = `${Math.round((entry.row.kv_use ?? 0) * 100)}%`;
    if (cells.bar.dataset.share !== share) {
      cells.bar.dataset.share = share;
      cells.bar.style.setProperty("--share", share);
    }
  }
}

export function stateOf(row) {
  if (row.stale) return "stale";
  return row.ejected ? "ejected" : row.state;
}

// The state where it has to be said in a word.
function wordOf(row) {
  const state = stateOf(row);
  return state === "ready" ? "" : state;
}

function sortEntries(entries, key, order) {
  const column = COLUMNS.find((one) => one.key === key) ?? COLUMNS[0];
  const sign = order === "descending" ? -1 : 1;
  return [...entries].sort((one, other) => {
    const [a, b] = [column.sort(one), column.sort(other)];
    if (a == null || b == null) return (a == null) - (b == null) || byName(one, other);
    const compared = typeof a === "string" ? names.compare(a, b) : a - b;
    return sign * compared || byName(one, other);
  });
}

function byName(one, other) {
  return names.compare(one.name, other.name);
}

// Whole numbers as they are, until they would not fit.
function short(value) {
  return value != null && (value >= 1e6 || !Number.isInteger(value)) ? compact(value) : integer(value);
}

function ttft(row) {
  const { text, unit } = durations([row.ttft_s.p50]);
  return unit ? `${text} ${unit}` : text;
}

const COURSE_WIDTH = 72;
const COURSE_HEIGHT = 18;

function courseLine(values, most) {
  let path = "";
  let isDown = false;
  values.forEach((value, at) => {
    if (value !== null) {
      const x = (at / (values.length - 1)) * COURSE_WIDTH;
      const y = COURSE_HEIGHT - 1 - (value / most) * (COURSE_HEIGHT - 2);
      path += `${isDown ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    }
    isDown = value !== null;
  });
  return path;
}

function nameAt(event) {
  return event.target.closest("tr[data-name]")?.dataset.name ?? null;
}
