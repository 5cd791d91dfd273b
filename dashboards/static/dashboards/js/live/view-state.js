// What a person has chosen to see, kept in the URL, so that a link shows the same.
const DEFAULTS = {
  workload: "", model: "", states: "", find: "", range: "1", from: "", to: "", plane: "decision", spread: "time", sort: "name", order: "ascending",
  instance: "", versus: "", then: "", wall: "",
};

export class ViewState {
  #values;
  #listeners = [];

  constructor() {
    const query = new URLSearchParams(location.search);
    this.#values = Object.fromEntries(Object.entries(DEFAULTS).map(([key, value]) => [key, query.get(key) ?? value]));
  }

  get(key) {
    return this.#values[key];
  }

  // Which part of the traffic: what the server counts for this page.
  get selection() {
    return { model: this.#values.model, workload: this.#values.workload };
  }

  // The instances set apart from the rest, the chosen one first.
  get apart() {
    return [...new Set([this.#values.instance, this.#values.versus])].filter(Boolean);
  }

  // All that is chosen, as a query.
  get address() {
    return new URLSearchParams(Object.entries(this.#values).filter(([key, value]) => value !== DEFAULTS[key])).toString();
  }

  set(changes) {
    Object.assign(this.#values, changes);
    const { address } = this;
    history.replaceState(null, "", address ? `?${address}` : location.pathname);
    for (const listener of this.#listeners) listener(this);
  }

  onChange(listener) {
    this.#listeners.push(listener);
  }
}
