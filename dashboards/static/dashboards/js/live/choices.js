// What can be chosen on the live page, and what is: selects, chips and segments that follow the view state.
import { setAttribute, setClass, setHidden, setText } from "./changes.js";

const find = (selector) => document.querySelector(selector);

// Keeps a select's options; `first` is the option that stays at the top. What is chosen stays an option when it is gone.
class Choice {
  #select;
  #first;
  #shown = "";

  constructor(select, onChoose) {
    this.#select = select;
    this.#first = select.options[0];
    select.addEventListener("change", () => onChoose(select.value));
  }

  // options: [[value, text]].
  show(options, chosen) {
    const all = !chosen || options.some(([value]) => value === chosen) ? options : [...options, [chosen, chosen]];
    const text = JSON.stringify(all);
    if (text !== this.#shown && document.activeElement !== this.#select) {
      this.#shown = text;
      this.#select.replaceChildren(this.#first, ...all.map(([value, label]) => new Option(label, value)));
    }
    if (this.#select.value !== chosen && document.activeElement !== this.#select) this.#select.value = chosen;
    setClass(this.#select.closest("label"), "is-set", chosen !== "");
  }
}

const AGO_MIN = [2, 5, 15, 30, 60];

export class Choices {
  #state;
  #selects;
  #shown = "";

  constructor(state) {
    this.#state = state;
    const choose = (key) => (value) => {
      state.set({ [key]: value });
      document.activeElement?.blur();
    };
    this.#selects = Object.fromEntries(["workload", "model", "instance", "versus", "then"].map((key) => [key, new Choice(find(`#${key}`), choose(key))]));
    for (const button of document.querySelectorAll("[data-set]")) {
      button.addEventListener("click", () => {
        const [key, value] = button.dataset.set.split("=");
        state.set({ [key]: value, ...(key === "range" ? { from: "", to: "" } : {}) });
      });
    }
    find("#states").addEventListener("click", (event) => {
      const chip = event.target.closest("button")?.dataset.state;
      if (!chip) return;
      const states = this.states;
      state.set({ states: (states.includes(chip) ? states.filter((one) => one !== chip) : [...states, chip]).join(",") });
    });
    const search = find("#find");
    search.value = state.get("find");
    search.addEventListener("input", () => state.set({ find: search.value }));
  }

  get states() {
    return this.#state.get("states").split(",").filter(Boolean);
  }

  // Most frames bring nothing new to choose.
  show(frame, counts) {
    const state = this.#state;
    const names = frame.instances.map((row) => row.name);
    const workloads = frame.workloads.map((row) => row.name);
    const stamp = JSON.stringify([Math.floor(frame.time_unix_s / 60), names, workloads, frame.models, [...counts], state.address]);
    if (stamp === this.#shown) return;
    // A select that is open is left alone, and looked at again.
    this.#shown = document.activeElement?.tagName === "SELECT" ? "" : stamp;
    const named = (of) => of.map((name) => [name, name]);
    this.#selects.workload.show(named(workloads), state.get("workload"));
    this.#selects.model.show(named(frame.models), state.get("model"));
    this.#selects.instance.show(named(names), state.get("instance"));
    this.#selects.versus.show(named(names.filter((name) => name !== state.get("instance"))), state.get("versus"));
    this.#selects.then.show(momentsOf(frame.time_unix_s, state.get("then")), state.get("then"));
    this.#showStates(counts);
    for (const button of document.querySelectorAll("[data-set]")) {
      const [key, value] = button.dataset.set.split("=");
      const isOther = key === "range" && (state.get("from") || state.get("to"));
      setAttribute(button, "aria-pressed", String(!isOther && state.get(key) === value));
    }
  }

  #showStates(counts) {
    const chosen = this.states;
    for (const chip of document.querySelectorAll("#states button")) {
      const count = counts.get(chip.dataset.state) ?? 0;
      const pressed = chosen.includes(chip.dataset.state);
      setHidden(chip, count === 0 && !pressed);
      setAttribute(chip, "aria-pressed", String(pressed));
      setText(chip, `${count} ${chip.dataset.state}`);
    }
  }
}

// Some minutes back from now, by whole minutes so that the options stand still for a while; and the one that is chosen.
function momentsOf(nowS, chosen) {
  const minute = Math.floor(nowS / 60) * 60;
  const text = (s) => new Date(s * 1000).toISOString().slice(11, 16);
  const options = AGO_MIN.map((ago) => [String(minute - ago * 60), `${text(minute - ago * 60)} (${ago} min ago)`]);
  if (!chosen || options.some(([value]) => value === chosen)) return options;
  return [...options, [chosen, `${new Date(Number(chosen) * 1000).toISOString().slice(11, 19)} UTC`]];
}
