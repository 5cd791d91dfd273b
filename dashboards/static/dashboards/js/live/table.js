// The table: the same instances in numbers. Rows are kept and only their texts change; the order stands still unless a
// person sorts by something that moves. Rows in the window follow every frame, the others by turns: whatever changes in
// the table is laid out and painted, in sight or not.
import { NONE, age, compact, durations, integer, percent, perSecond } from "../format.js";
import { setAttribute, setClass, setText } from "./changes.js";
import { INSIDE, Sight } from "./sight.js";

const names = new Intl.Collator("en", { numeric: true });
// What a column tells: how one decision saw the instance, what is there now, or its last minute.
const [DECISION, NOW, MINUTE] = ["decision", "now", "minute"];
const EVERYTHING = [DECISION, NOW, MINUTE];
const COLUMNS = [
  { key: "name", sort: (one) => one.name },
  { key: "hit", of: DECISION, sort: (one) => one.candidate?.hit_tokens, text: (one) => short(one.candidate?.hit_tokens) },
  { key: "new", of: DECISION, sort: (one) => one.candidate?.new_tokens, text: (one) => short(one.candidate?.new_tokens) },
  { key: "queued", of: DECISION, sort: (one) => one.candidate?.queued_prefill_tokens, text: (one) => short(one.candidate?.queued_prefill_tokens) },
  { key: "p", of: DECISION, sort: (one) => one.candidate?.p_token, text: (one) => short(one.candidate?.p_token) },
  { key: "bs", of: DECISION, sort: (one) => one.candidate?.bs, text: (one) => short(one.candidate?.bs) },
  { key: "score", of: DECISION, sort: (one) => one.candidate?.score, text: (one) => one.candidate?.filtered ?? short(one.candidate?.score) },
  { key: "times", of: DECISION, sort: (one) => one.timesChosen, text: (one) => (one.timesChosen == null ? NONE : `${one.timesChosen.toFixed(1)}×`) },
  { key: "now-bs", of: NOW, sort: (one) => one.row.bs, text: (one) => short(one.row.bs) },
  { key: "now-queued", of: NOW, sort: (one) => one.row.queued_prefill_tokens, text: (one) => short(one.row.queued_prefill_tokens) },
  { key: "kv", of: NOW, sort: (one) => one.row.kv_use, text: (one) => percent(one.row.kv_use, 0) },
  { key: "rate", of: MINUTE, sort: (one) => one.row.requests_per_s, text: (one) => perSecond(one.row.requests_per_s) },
  { key: "ttft", of: MINUTE, sort: (one) => one.row.ttft_s.p50, text: (one) => ttft(one.row) },
  { key: "p95", of: MINUTE, sort: (one) => one.row.score.p95, text: (one) => compact(one.row.score.p95) },
  { key: "age", of: MINUTE, sort: (one) => one.row.reported_age_s, text: (one) => age(one.row.reported_age_s) },
];
const COLUMNS_OF = Object.fromEntries(EVERYTHING.map((part) => [part, COLUMNS.filter((column) => column.of === part)]));

// What tells of a minute is read no better four times a second: each frame is the turn of every so manieth row. Out of sight,
// each second is.
const TURNS = 4;
// Where rows are sorted by what moves, they are put in order this often and in so many steps: what stands is read, and to
// move one lays all of them out anew.
const ORDER_S = 2;
const STEPS = 4;

export class InstanceTable {
  #table;
  #body;
  #template;
  #rows = new Map();
  #sight = new Sight(INSIDE, (element) => this.#catchUp(element.dataset.name));
  #order = [];
  #orderedSecond = -Infinity;
  #sort = { sort: "", order: "" };
  #shownSecond = null;
  #mostBs = 1;
  #letters = 0;
  #turn = 0;
  #turnAway = 0;
  #highlighted = "";

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
    this.#showSort({ sort, order });
    const sorted = sortEntries(entries, sort, order);
    const isOther = this.#keepRows(sorted);
    for (const entry of sorted) this.#rows.get(entry.name).entry = entry;
    const isNewSecond = second !== this.#shownSecond;
    this.#shownSecond = second;
    this.#makeRoom(sorted);
    if (isWhole || isOther || second >= this.#orderedSecond + ORDER_S) {
      this.#order = sorted.map((entry) => entry.name);
      this.#orderedSecond = second;
    }
    const isMoved = this.#putInOrder(isWhole || isOther);
    this.#fillRows({ isWhole, isNewSecond, isMoved });
  }

  // apart: the chosen instance and the one it is compared with.
  highlight(name, apart) {
    const wanted = [name, ...apart].join("\n");
    if (wanted === this.#highlighted) return;
    this.#highlighted = wanted;
    for (const [key, { element }] of this.#rows) {
      setAttribute(element, "aria-selected", String(apart.includes(key)));
      setClass(element, "is-second", key === apart[1]);
      setClass(element, "is-highlighted", key === name);
    }
  }

  names() {
    return this.#order;
  }

  focus(name) {
    this.#rows.get(name)?.element.focus({ preventScroll: false });
  }

  #showSort({ sort, order }) {
    if (sort === this.#sort.sort && order === this.#sort.order) return;
    this.#sort = { sort, order };
    for (const header of this.#table.tHead.querySelectorAll("th[data-key]")) {
      setAttribute(header, "aria-sort", header.dataset.key === sort ? order : "none");
    }
  }

  // One row for each entry and no other; returns whether any came or went.
  #keepRows(entries) {
    const kept = new Set(entries.map((entry) => entry.name));
    const gone = [...this.#rows].filter(([name]) => !kept.has(name));
    for (const [name, { element }] of gone) {
      this.#sight.forget(element);
      element.remove();
      this.#rows.delete(name);
    }
    const come = [...kept].filter((name) => !this.#rows.has(name));
    for (const name of come) this.#addRow(name);
    if (come.length > 0) this.#highlighted = null;
    return gone.length + come.length > 0;
  }

  #addRow(name) {
    const element = this.#template.content.firstElementChild.cloneNode(true);
    element.dataset.name = name;
    const cells = Object.fromEntries([...element.querySelectorAll("[data-cell]")].map((cell) => [cell.dataset.cell, cell]));
    this.#rows.set(name, { element, cells, turn: this.#rows.size % TURNS, entry: null, candidate: undefined, filledSecond: -Infinity });
    this.#body.append(element);
    this.#sight.watch(element);
  }

  // Only rows that stand wrong are moved, and not too many at once, so that no task is long. Returns whether any was.
  #putInOrder(isWhole) {
    const focused = document.activeElement;
    const most = isWhole ? Infinity : Math.ceil(this.#order.length / STEPS);
    let moved = 0;
    let next = this.#body.firstElementChild;
    for (const name of this.#order) {
      const { element } = this.#rows.get(name);
      if (element === next) {
        next = next.nextElementSibling;
      } else if (moved < most) {
        this.#body.insertBefore(element, next);
        moved += 1;
      }
    }
    if (this.#body.contains(focused) && focused !== document.activeElement) focused.focus();
    return moved > 0;
  }

  // The column of names is as wide as the longest one needs; it never shrinks, so that nothing jumps.
  #makeRoom(entries) {
    const letters = Math.max(this.#letters, ...entries.map(({ name, row }) => name.length + wordOf(row).length));
    if (letters === this.#letters) return;
    this.#letters = letters;
    this.#table.style.setProperty("--name-letters", letters);
  }

  #fillRows({ isWhole, isNewSecond, isMoved }) {
    const rows = [...this.#rows.values()];
    const isSeen = ({ element }) => this.#sight.has(element);
    // A new decision changes half of the table, and a new order lays all of it out: they take the turn of the rest.
    const isBusy = isMoved || rows.some((row) => row.entry.candidate !== row.candidate && isSeen(row));
    if (!isBusy) this.#turn = (this.#turn + 1) % TURNS;
    if (isNewSecond) this.#turnAway = (this.#turnAway + 1) % TURNS;
    // The scale of courses is the same in all rows, so that they can be compared.
    if (this.#turn === 0 || isWhole) this.#mostBs = Math.max(1, ...rows.flatMap(({ entry }) => entry.row.bs_course.map((bs) => bs ?? 0)));
    for (const row of rows) {
      const parts = isWhole ? EVERYTHING : isSeen(row) ? this.#partsSeen(row, isBusy) : this.#partsAway(row, isNewSecond);
      if (parts.length > 0) this.#fill(row, parts);
    }
  }

  #partsSeen(row, isBusy) {
    if (row.turn === this.#turn && !isBusy) return EVERYTHING;
    // Where frames are rare, a turn would be long in coming.
    if (row.filledSecond < this.#shownSecond - 1) return EVERYTHING;
    return isBusy ? [DECISION] : [DECISION, NOW];
  }

  #partsAway(row, isNewSecond) {
    return isNewSecond && row.turn === this.#turnAway ? EVERYTHING : [];
  }

  // A row has come into the window.
  #catchUp(name) {
    const row = this.#rows.get(name);
    if (row?.entry) this.#fill(row, EVERYTHING);
  }

  #fill(row, parts) {
    const { element, cells, entry } = row;
    setClass(element, "is-chosen", entry.kind === "chosen");
    setClass(element, "is-out", entry.kind === "out");
    const state = stateOf(entry.row);
    setText(cells.name, entry.name);
    if (cells.state.dataset.state !== state) {
      cells.state.dataset.state = state;
      cells.state.title = state;
    }
    setText(cells.word, wordOf(entry.row));
    if (parts.includes(DECISION) && entry.candidate !== row.candidate) {
      fillCells(cells, entry, DECISION);
      row.candidate = entry.candidate;
    }
    if (parts.includes(NOW)) {
      fillCells(cells, entry, NOW);
      setShare(cells.bar, `${Math.round((entry.row.kv_use ?? 0) * 100)}%`);
    }
    if (parts.includes(MINUTE)) {
      fillCells(cells, entry, MINUTE);
      setAttribute(cells.course, "d", courseLine(entry.row.bs_course, this.#mostBs));
      row.filledSecond = this.#shownSecond;
    }
  }
}

function fillCells(cells, entry, part) {
  for (const { key, text } of COLUMNS_OF[part]) setText(cells[key], text(entry));
}

function setShare(bar, share) {
  if (bar.dataset.share === share) return;
  bar.dataset.share = share;
  bar.style.setProperty("--share", share);
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
