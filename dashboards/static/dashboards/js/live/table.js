// The table: the same instances in numbers. Rows are kept and only their texts change; the order stands still unless a
// person sorts by something that moves.
import { NONE, age, compact, durations, integer, percent, perSecond } from "../format.js";

const names = new Intl.Collator("en", { numeric: true });
const COLUMNS = [
  { key: "name", sort: (one) => one.name },
  { key: "hit", sort: (one) => one.candidate?.hit_tokens, text: (one) => integer(one.candidate?.hit_tokens) },
  { key: "new", sort: (one) => one.candidate?.new_tokens, text: (one) => integer(one.candidate?.new_tokens) },
  { key: "queued", sort: (one) => one.candidate?.queued_prefill_tokens, text: (one) => integer(one.candidate?.queued_prefill_tokens) },
  { key: "p", sort: (one) => one.candidate?.p_token, text: (one) => integer(one.candidate?.p_token) },
  { key: "bs", sort: (one) => one.candidate?.bs, text: (one) => integer(one.candidate?.bs) },
  { key: "score", sort: (one) => one.candidate?.score, text: (one) => one.candidate?.filtered ?? compactScore(one.candidate?.score) },
  { key: "times", sort: (one) => one.timesChosen, text: (one) => (one.timesChosen == null ? NONE : `${one.timesChosen.toFixed(1)}×`) },
  { key: "now-bs", sort: (one) => one.row.bs, text: (one) => integer(one.row.bs) },
  { key: "now-queued", sort: (one) => one.row.queued_prefill_tokens, text: (one) => integer(one.row.queued_prefill_tokens) },
  { key: "kv", sort: (one) => one.row.kv_use },
  { key: "rate", sort: (one) => one.row.requests_per_s, text: (one) => perSecond(one.row.requests_per_s) },
  { key: "ttft", sort: (one) => one.row.ttft_s.p50, text: (one) => ttft(one.row) },
  { key: "p95", sort: (one) => one.row.score.p95, text: (one) => compact(one.row.score.p95) },
  { key: "age", sort: (one) => one.row.reported_age_s, text: (one) => age(one.row.reported_age_s) },
];

export class InstanceTable {
  #table;
  #body;
  #template;
  #rows = new Map();
  #order = "";
  #sort = { sort: "name", order: "ascending" };
  #drawnSecond = null;
  #drawnRows = 0;

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

  // entries: [{ name, row, candidate, timesChosen, kind }] of the instances to list.
  show(entries, { sort, order, second }) {
    this.#sort = { sort, order };
    const sorted = sortEntries(entries, sort, order);
    const kept = new Set(sorted.map((entry) => entry.name));
    for (const [name, row] of this.#rows) {
      if (!kept.has(name)) {
        row.element.remove();
        this.#rows.delete(name);
      }
    }
    const isNewSecond = second !== this.#drawnSecond;
    for (const entry of sorted) this.#fill(this.#rowFor(entry.name), entry, isNewSecond);
    const wanted = sorted.map((entry) => entry.name).join("\n");
    if (wanted !== this.#order) {
      const focused = document.activeElement;
      this.#body.append(...sorted.map((entry) => this.#rows.get(entry.name).element));
      if (this.#body.contains(focused)) focused.focus();
      this.#order = wanted;
    }
    if (isNewSecond || sorted.length !== this.#drawnRows) this.#drawCourses(sorted);
    [this.#drawnSecond, this.#drawnRows] = [second, sorted.length];
    for (const header of this.#table.tHead.querySelectorAll("th[data-key]")) {
      header.setAttribute("aria-sort", header.dataset.key === sort ? order : "none");
    }
  }

  // apart: the chosen instance and the one it is compared with.
  highlight(name, apart) {
    for (const [key, { element }] of this.#rows) {
      element.setAttribute("aria-selected", String(apart.includes(key)));
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
    }
    return row;
  }

  // All rows have the same scale, so that the lines can be compared.
  #drawCourses(entries) {
    const most = Math.max(1, ...entries.flatMap(({ row }) => row.bs_course.map((bs) => bs ?? 0)));
    for (const { name, row } of entries) this.#rows.get(name).cells.course.setAttribute("d", courseLine(row.bs_course, most));
  }

  #fill({ element, cells }, entry, isNewSecond) {
    element.classList.toggle("is-chosen", entry.kind === "chosen");
    element.classList.toggle("is-out", entry.kind === "out");
    const state = stateOf(entry.row);
    setText(cells.name, entry.name);
    if (cells.state.dataset.state !== state) {
      cells.state.dataset.state = state;
      cells.state.title = state;
    }
    setText(cells.word, state === "ready" ? "" : state);
    for (const { key, text } of COLUMNS) {
      // Ages change with every frame; once a second is enough to read them.
      if (text && (key !== "age" || isNewSecond || !shown.has(cells.age))) setText(cells[key], text(entry));
    }
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

function compactScore(score) {
  return score != null && score >= 1e7 ? compact(score) : score != null && !Number.isInteger(score) ? compact(score) : integer(score);
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

// What an element shows is remembered here: reading it from the document costs more than all the rest of a row.
const shown = new WeakMap();

function setText(element, text) {
  if (shown.get(element) === text) return;
  shown.set(element, text);
  element.textContent = text;
}
