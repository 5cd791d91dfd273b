// The live page, put together: a frame comes in, every part shows it.
import { compact, integer } from "../format.js";
import { bindKeys } from "../keys.js";
import { Badge } from "./badge.js";
import { Connection } from "./connection.js";
import { Distribution } from "./distribution.js";
import { marksOf, isProduct } from "./marks.js";
import { Plane } from "./plane.js";
import { Strip } from "./strip.js";
import { InstanceTable, stateOf } from "./table.js";
import { Tip } from "./tip.js";
import { ViewState } from "./view-state.js";

// A decision stays on the plane for this long before the newest one replaces it, so that an eye can follow.
const HOLD_MS = 2000;
const find = (selector) => document.querySelector(selector);

class LivePage {
  #state = new ViewState();
  #frame = null;
  #receivedMs = 0;
  #waiting = null;
  #paused = false;
  #decision = null;
  #decisionSinceMs = -Infinity;
  #hovered = null;
  #marks = [];

  constructor() {
    this.strip = new Strip(find("#strip"));
    this.tip = new Tip(find("#tip"));
    this.badge = new Badge(find("#badge"), (word) => { find("#announcer").textContent = `Data: ${word}`; });
    this.plane = new Plane(find("#plane"), {
      onHover: (mark, at) => { this.#hover(mark?.name ?? null); this.tip.show(mark, at); },
      onPick: (mark) => this.#pick(mark?.name ?? ""),
    });
    this.table = new InstanceTable(find("#instances"), {
      onSort: (sort, order) => this.#state.set({ sort, order }),
      onHover: (name) => this.#hover(name),
      onPick: (name) => this.#pick(name ?? ""),
    });
    this.distribution = new Distribution(find("#distribution"));
    this.#state.onChange(() => this.#render());
    this.#bindControls();
    this.#bindKeys();
  }

  start() {
    this.#take(JSON.parse(find("#first-frame").textContent));
    const { socket, frame } = find("#live").dataset;
    new Connection({
      socketPath: socket,
      framePath: frame,
      onFrame: (received) => this.#take(received),
      onState: (state) => this.badge.setLink(state),
    }).start();
    document.addEventListener("visibilitychange", () => this.#render());
  }

  #take(frame) {
    if (this.#paused) {
      this.#waiting = [frame, performance.now()];
      return;
    }
    this.#frame = frame;
    this.#receivedMs = performance.now();
    this.badge.setFrame(frame, this.#receivedMs);
    this.#render();
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
  #render() {
    const frame = this.#frame;
    if (frame === null || document.hidden) return;
    this.#holdDecision(frame);
    const view = this.#state.get("plane");
    this.#marks = marksOf(frame, this.#decision, view);
    this.strip.show(frame);
    this.#showPlane(frame, view);
    this.distribution.setView(this.#state.get("spread"));
    this.distribution.show(frame);
    this.#showStates(frame);
    this.#showTable(frame);
    this.#showWords(frame, view);
    this.#showHighlight();
  }

  #holdDecision(frame) {
    const now = performance.now();
    const newest = frame.decision;
    const isNew = newest && newest.request_id !== this.#decision?.request_id;
    if (!isNew || now - this.#decisionSinceMs < HOLD_MS) return;
    this.#decision = newest;
    this.#decisionSinceMs = now;
  }

  #showPlane(frame, view) {
    const visible = new Set(this.#visible(frame).map((row) => row.name));
    const known = new Set(frame.instances.map((row) => row.name));
    this.plane.show({
      marks: this.#marks.filter((mark) => visible.has(mark.name) || !known.has(mark.name)),
      trail: frame.trail.map(([row, pToken, bs, ageS]) => ({ name: frame.instances[row]?.name ?? "", pToken, bs, ageS })),
      receivedMs: this.#receivedMs,
      decision: view === "decision" ? this.#decision : null,
      pace: view === "decision" && this.#decision ? "decision" : "now",
    });
  }

  #visible(frame) {
    const states = this.#state.get("states").split(",").filter(Boolean);
    const text = this.#state.get("find").trim().toLowerCase();
    return frame.instances.filter(
      (row) => (states.length === 0 || states.includes(stateOf(row))) && row.name.toLowerCase().includes(text),
    );
  }

  #showTable(frame) {
    const marks = new Map(marksOf(frame, this.#decision, "decision").map((mark) => [mark.name, mark]));
    const entries = this.#visible(frame).map((row) => {
      const mark = this.#decision ? marks.get(row.name) : null;
      return { name: row.name, row, candidate: mark?.candidate ?? null, timesChosen: mark?.timesChosen ?? null, kind: mark?.kind ?? "candidate" };
    });
    this.table.show(entries, { sort: this.#state.get("sort"), order: this.#state.get("order") });
    find("#instances-note").textContent = `${entries.length} of ${frame.instances.length}`;
    find("#no-match").hidden = entries.length > 0 || frame.instances.length === 0;
  }

  #showStates(frame) {
    const counts = new Map();
    for (const row of frame.instances) counts.set(stateOf(row), (counts.get(stateOf(row)) ?? 0) + 1);
    const chosen = this.#state.get("states").split(",").filter(Boolean);
    for (const chip of document.querySelectorAll("#states button")) {
      const count = counts.get(chip.dataset.state) ?? 0;
      const pressed = chosen.includes(chip.dataset.state);
      chip.hidden = count === 0 && !pressed;
      chip.setAttribute("aria-pressed", String(pressed));
      const text = `${count} ${chip.dataset.state}`;
      if (chip.textContent !== text) chip.textContent = text;
    }
  }

  #showWords(frame, view) {
    find("#no-workers").hidden = frame.workers.length > 0;
    find("#no-instances").hidden = frame.workers.length === 0 || frame.instances.length > 0;
    find("#live").hidden = frame.instances.length === 0;
    const hasTraffic = frame.headline.requests > 0 || this.#decision !== null;
    find("#no-traffic").hidden = hasTraffic || frame.instances.length === 0;
    const decision = this.#decision;
    find("#decision-prompt").textContent = decision ? `${integer(decision.prompt_tokens)}-token prompt →` : "no decision yet";
    find("#decision-chosen").textContent = decision ? decision.chosen ?? "nobody" : "";
    const link = find("#decision-link");
    if (decision) link.href = `${link.dataset.base}${encodeURIComponent(decision.request_id)}/`;
    find("#plane-caption").textContent = captionOf(decision, view);
    find("#plane").setAttribute("aria-label", `Score plane of ${frame.instances.length} instances. ${captionOf(decision, view)}`);
    const isWall = this.#state.get("wall") !== "";
    document.body.classList.toggle("wall", isWall);
    find("#wall").setAttribute("aria-pressed", String(isWall));
    for (const button of document.querySelectorAll("[data-set]")) {
      const [key, value] = button.dataset.set.split("=");
      button.setAttribute("aria-pressed", String(this.#state.get(key) === value));
    }
  }

  // -- acting --------------------------------------------------------------------------------------------------------
  #hover(name) {
    if (name === this.#hovered) return;
    this.#hovered = name;
    this.#showHighlight();
  }

  #pick(name) {
    this.#state.set({ instance: name === this.#state.get("instance") ? "" : name });
  }

  #showHighlight() {
    const picked = this.#state.get("instance");
    this.plane.highlight(this.#hovered ?? picked);
    this.table.highlight(this.#hovered ?? picked, picked);
  }

  #bindControls() {
    for (const button of document.querySelectorAll("[data-set]")) {
      button.addEventListener("click", () => {
        const [key, value] = button.dataset.set.split("=");
        this.#state.set({ [key]: value });
      });
    }
    find("#states").addEventListener("click", (event) => {
      const state = event.target.closest("button")?.dataset.state;
      if (!state) return;
      const states = this.#state.get("states").split(",").filter(Boolean);
      const changed = states.includes(state) ? states.filter((one) => one !== state) : [...states, state];
      this.#state.set({ states: changed.join(",") });
    });
    const search = find("#find");
    search.value = this.#state.get("find");
    search.addEventListener("input", () => this.#state.set({ find: search.value }));
    find("#pause").addEventListener("click", () => this.#setPaused(!this.#paused));
    find("#wall").addEventListener("click", () => this.#toggleWall());
  }

  #bindKeys() {
    bindKeys({
      p: () => this.#setPaused(!this.#paused),
      w: () => this.#toggleWall(),
      "/": () => find("#find").focus(),
      j: () => this.#step(1),
      k: () => this.#step(-1),
      Escape: () => this.#pick(this.#state.get("instance")),
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
}

function captionOf(decision, view) {
  if (view === "now") return "Where an average request of the last minute would land now. Lower left is better; amber sparks are requests being placed.";
  if (!decision) return "Each dot will be an instance as one request sees it; the smallest product of P-token and BS wins.";
  const scored = decision.candidates.filter((candidate) => candidate.score != null);
  if (decision.chosen === null) return "Every instance was out for this request; the table says why.";
  if (!isProduct(decision)) return `Chosen by ${decision.scorer}: its score is not the plain product, so no line of equal score is drawn through the chosen one.`;
  if (scored.length < 2) return `${decision.chosen} was the only candidate, with a score of ${compact(scored[0].score)}.`;
  if (scored[1].score === scored[0].score) {
    return `A tie at ${compact(scored[0].score)}: of the best, ${decision.chosen} was chosen least recently.`;
  }
  const gap = scored[1].score / scored[0].score;
  return `Coming from the lower left, the amber line of equal score (${compact(scored[0].score)}) meets ${decision.chosen} first; the next best, ${scored[1].instance}, scores ${gap.toFixed(2)}×.`;
}

new LivePage().start();
