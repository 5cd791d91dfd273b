// The live page, put together: a frame comes in, every part shows it.
import { integer } from "../format.js";
import { bindKeys } from "../keys.js";
import { Badge } from "./badge.js";
import { Beat } from "./beat.js";
import { setAttribute, setClass, setHidden, setText } from "./changes.js";
import { Choices } from "./choices.js";
import { Connection } from "./connection.js";
import { Distribution } from "./distribution.js";
import { Door } from "./door.js";
import { exportFrame, exportHistory, exportTable } from "./export.js";
import { HistoryCard } from "./history.js";
import { marksOf } from "./marks.js";
import { Past } from "./past.js";
import { Plane } from "./plane.js";
import { Strip } from "./strip.js";
import { InstanceTable, stateOf } from "./table.js";
import { TimeRangeControl, keptWords, timeRange } from "./time-range.js";
import { Tip } from "./tip.js";
import { Turns } from "./turns.js";
import { ViewState } from "./view-state.js";
import { planeCaption, scopeNote, spreadCaption, spreadSpan } from "./words.js";

// A decision stays on the plane for this long before the newest one replaces it, so that an eye can follow.
const HOLD_MS = 2000;
const find = (selector) => document.querySelector(selector);

class LivePage {
  #state = new ViewState();
  #frame = null;
  #receivedMs = 0;
  #waiting = null;
  #past = null;
  #range;
  #mostDays;
  #keptHours;
  #paused = false;
  #decision = null;
  #decisionSinceMs = -Infinity;
  #hovered = null;
  #entries = [];
  #beat = new Beat();
  #turns = new Turns(this.#beat, [() => this.#showAbove(), (isWhole) => this.#showTable(isWhole)]);

  constructor() {
    const { socket, frame, past, mostDays, keptHours } = find("#live").dataset;
    [this.#mostDays, this.#keptHours] = [Number(mostDays), Number(keptHours)];
    this.#range = timeRange(this.#state, this.#mostDays);
    this.rangeControl = new TimeRangeControl(find("#range-button"), find("#range-dialog"), this.#state, this.#mostDays);
    this.strip = new Strip(find("#strip"));
    this.door = new Door(find("#door"));
    this.tip = new Tip(find("#tip"));
    this.badge = new Badge(find("#badge"), (word) => { find("#announcer").textContent = `Data: ${word}`; });
    this.plane = new Plane(find("#plane"), {
      onHover: (mark, at) => { this.#hover(mark?.name ?? null); this.tip.show(mark, at); },
      onPick: (mark, isSecond) => this.#pick(mark?.name ?? "", isSecond),
    });
    this.table = new InstanceTable(find("#instances"), {
      onSort: (sort, order) => this.#state.set({ sort, order }),
      onHover: (name) => this.#hover(name),
      onPick: (name, isSecond) => this.#pick(name ?? "", isSecond),
    });
    this.distribution = new Distribution(find("#distribution"), new Tip(find("#spread-tip")));
    this.history = new HistoryCard(find(".history"), { onThen: (s) => this.#state.set({ then: String(Math.floor(s)) }) });
    this.choices = new Choices(this.#state);
    this.past = new Past({
      path: past,
      onAnswer: (answer) => { if (!this.#paused || this.#past === null) { this.#past = answer; this.#turns.ask(); } },
      onFailure: () => find("#announcer").textContent = "The history could not be read; it is asked for again.",
    });
    this.connection = new Connection({
      socketPath: socket,
      framePath: frame,
      onFrame: (received) => this.#take(received),
      onState: (state) => this.badge.setLink(state),
    });
    this.#state.onChange(() => this.#changed());
    this.#bindControls();
    this.#bindKeys();
  }

  start() {
    this.#take(JSON.parse(find("#first-frame").textContent));
    this.#changed();
    this.connection.start();
    document.addEventListener("visibilitychange", () => this.#render());
  }

  // What is asked of the server follows the state.
  #changed() {
    const { selection, apart } = this.#state;
    this.connection.select(selection);
    this.#range = timeRange(this.#state, this.#mostDays);
    this.past.ask({ range: this.#range, ...selection, apart, then: this.#state.get("then") });
    this.#render();
  }

  #take(frame) {
    if (this.#paused) {
      this.#waiting = [frame, performance.now()];
      return;
    }
    this.#frame = frame;
    this.#receivedMs = performance.now();
    this.badge.setFrame(frame, this.#receivedMs);
    find("#live").dataset.frameTime = frame.time_unix_s;
    this.#beat.setInstances(frame.instances.length);
    this.#turns.ask();
  }

  #setPaused(paused) {
    this.#paused = paused;
    this.badge.setPaused(paused);
    const button = find("#pause");
    button.setAttribute("aria-pressed", String(paused));
    button.querySelector("span").textContent = paused ? "Resume" : "Pause";
    if (paused || this.#waiting === null) return;
    [this.#frame, this.#receivedMs] = this.#waiting;
    this.#waiting = null;
    this.badge.setFrame(this.#frame, this.#receivedMs);
    this.#render();
  }

  // -- showing -------------------------------------------------------------------------------------------------------
  // All of it, now.
  #render() {
    if (this.#frame !== null && !document.hidden) this.#turns.all();
  }

  // What stands above the table.
  #showAbove() {
    const frame = this.#frame;
    this.#holdDecision(frame);
    const view = this.#state.get("plane");
    this.strip.show(frame);
    this.door.show(frame, this.#past?.instances_fill ?? null);
    this.#showPlane(frame, view);
    this.choices.show(frame, countStates(frame));
    this.rangeControl.show(this.#range);
    this.#showWords(frame, view, this.#state.get("spread"));
    this.#showEmpty(frame);
    this.#showDistribution();
    this.#showHistory();
  }

  #showDistribution() {
    this.distribution.show({ frame: this.#frame, past: this.#answered(), view: this.#state.get("spread"), range: this.#range });
  }

  #showHistory() {
    const note = this.#range.refused || (this.#answered() ? keptWords(this.#range, this.#past.history, this.#keptHours) : "");
    setText(find("#range-note"), note);
    setHidden(find("#range-note"), note === "");
    this.history.show({ frame: this.#frame, past: this.#answered(), range: this.#range, apart: this.#state.apart, then: this.#state.get("then") });
  }

  // The server's answer, unless it is to an older question.
  #answered() {
    return this.#past?.key === this.#range.key ? this.#past : null;
  }

  #holdDecision(frame) {
    const now = performance.now();
    const newest = frame.decision;
    const { workload, model } = this.#state.selection;
    const isOther = this.#decision !== null && ((workload && this.#decision.workload !== workload) || (model && this.#decision.model !== model));
    if (isOther) this.#decision = null;
    const isNew = newest && newest.request_id !== this.#decision?.request_id;
    if (!isNew || (!isOther && now - this.#decisionSinceMs < HOLD_MS)) return;
    this.#decision = newest;
    this.#decisionSinceMs = now;
  }

  #showPlane(frame, view) {
    const visible = new Set(this.#visible(frame).map((row) => row.name));
    const known = new Set(frame.instances.map((row) => row.name));
    const { model } = this.#state.selection;
    this.plane.show({
      marks: marksOf(frame, this.#decision, view).filter((mark) => visible.has(mark.name) || (!model && !known.has(mark.name))),
      trail: frame.trail,
      names: frame.instances.map((row) => row.name),
      receivedMs: this.#receivedMs,
      decision: view === "decision" ? this.#decision : null,
      pace: view === "decision" && this.#decision ? "decision" : "now",
    });
  }

  #visible(frame) {
    const { states } = this.choices;
    const text = this.#state.get("find").trim().toLowerCase();
    return frame.instances.filter(
      (row) => (states.length === 0 || states.includes(stateOf(row))) && row.name.toLowerCase().includes(text),
    );
  }

  #showTable(isWhole) {
    const frame = this.#frame;
    const marks = new Map(marksOf(frame, this.#decision, "decision").map((mark) => [mark.name, mark]));
    this.#entries = this.#visible(frame).map((row) => {
      const mark = this.#decision ? marks.get(row.name) : null;
      return { name: row.name, row, candidate: mark?.candidate ?? null, timesChosen: mark?.timesChosen ?? null, kind: mark?.kind ?? "candidate" };
    });
    this.table.show(this.#entries, { sort: this.#state.get("sort"), order: this.#state.get("order"), second: frame.second, isWhole });
    setText(find("#instances-note"), `${this.#entries.length} of ${frame.instances.length}`);
    setHidden(find("#no-match"), this.#entries.length > 0 || frame.instances.length === 0);
    this.#showHighlight();
  }

  #showWords(frame, view, spread) {
    const decision = this.#decision;
    setText(find("#decision-prompt"), decision ? `${integer(decision.prompt_tokens)}-token prompt →` : "no decision yet");
    setText(find("#decision-chosen"), decision ? decision.chosen ?? "nobody" : "");
    const link = find("#decision-link");
    if (decision) setAttribute(link, "href", `${link.dataset.base}${encodeURIComponent(decision.request_id)}/`);
    setText(find("#plane-caption"), planeCaption(decision, view));
    setAttribute(find("#plane"), "aria-label", `Score plane of ${frame.instances.length} instances. ${planeCaption(decision, view)}`);
    setText(find("#spread-caption"), spreadCaption(spread, this.#past?.line ?? null));
    setText(find("#spread-span"), spreadSpan(spread, this.#range));
    const note = scopeNote(frame.selection, frame);
    setHidden(find("#scope-note"), note === "");
    setText(find("#scope-note"), note);
    const isWall = this.#state.get("wall") !== "";
    setClass(document.body, "wall", isWall);
    setAttribute(find("#wall"), "aria-pressed", String(isWall));
  }

  #showEmpty(frame) {
    const isFiltered = frame.selection.model !== "" || frame.selection.workload !== "";
    const hasInstances = frame.instances.length > 0 || frame.selection.model !== "";
    setHidden(find("#no-workers"), frame.workers.length > 0);
    setHidden(find("#no-instances"), frame.workers.length === 0 || hasInstances);
    setHidden(find("#live"), !hasInstances);
    setHidden(find("#no-traffic"), frame.headline.requests > 0 || this.#decision !== null || !hasInstances || isFiltered);
  }

  // -- acting --------------------------------------------------------------------------------------------------------
  #hover(name) {
    if (name === this.#hovered) return;
    this.#hovered = name;
    this.#showHighlight();
  }

  // The first pick sets an instance apart, a second one (with shift) compares it with another.
  #pick(name, isSecond = false) {
    const instance = this.#state.get("instance");
    if (isSecond && instance && name && name !== instance) {
      this.#state.set({ versus: name === this.#state.get("versus") ? "" : name });
      return;
    }
    const chosen = name === instance ? "" : name;
    this.#state.set({ instance: chosen, ...(chosen ? {} : { versus: "" }) });
  }

  #showHighlight() {
    const { apart } = this.#state;
    const [picked = ""] = apart;
    this.plane.highlight(this.#hovered ?? picked, apart[1] ?? "");
    this.table.highlight(this.#hovered ?? picked, apart);
  }

  #bindControls() {
    find("#pause").addEventListener("click", () => this.#setPaused(!this.#paused));
    find("#wall").addEventListener("click", () => this.#toggleWall());
    document.addEventListener("click", (event) => {
      const wanted = event.target.closest("[data-export]")?.dataset.export;
      if (wanted === "frame") exportFrame(this.#frame);
      if (wanted === "table") exportTable(this.#frame, this.table.sorted(this.#entries));
      if (wanted === "history" && this.history.shown) exportHistory(this.history.shown);
    });
  }

  #bindKeys() {
    bindKeys({
      p: () => this.#setPaused(!this.#paused),
      w: () => this.#toggleWall(),
      "/": () => find("#find").focus(),
      j: () => this.#step(1),
      k: () => this.#step(-1),
      c: () => this.#compareNext(),
      Escape: () => this.#state.set({ instance: "", versus: "", then: "" }),
    });
  }

  #toggleWall() {
    this.#state.set({ wall: this.#state.get("wall") ? "" : "1" });
  }

  #step(by) {
    const names = this.table.names();
    if (names.length === 0) return;
    const at = names.indexOf(this.#state.get("instance"));
    const name = names[at === -1 ? (by > 0 ? 0 : names.length - 1) : Math.min(names.length - 1, Math.max(0, at + by))];
    this.#state.set({ instance: name });
    this.table.focus(name);
  }

  #compareNext() {
    const [picked, versus] = [this.#state.get("instance"), this.#state.get("versus")];
    const others = this.table.names().filter((name) => name !== picked);
    if (!picked || others.length === 0) return;
    this.#state.set({ versus: others[others.indexOf(versus) + 1] ?? "" });
  }
}

function countStates(frame) {
  const counts = new Map();
  for (const row of frame.instances) counts.set(stateOf(row), (counts.get(stateOf(row)) ?? 0) + 1);
  return counts;
}

new LivePage().start();
