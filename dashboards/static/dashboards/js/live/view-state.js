// What a person has chosen to see, kept in the URL, so that a link shows the same.
const DEFAULTS = { plane: "decision", spread: "time", sort: "name", order: "ascending", states: "", instance: "", find: "", wall: "" };

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

  set(changes) {
    Object.assign(this.#values, changes);
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(this.#values)) {
      if (value !== DEFAULTS[key]) query.set(key, value);
    }
    const text = query.toString();
    history.replaceState(null, "", text ? `?${text}` : location.pathname);
    for (const listener of this.#listeners) listener(this);
  }

  onChange(listener) {
    this.#listeners.push(listener);
  }
}
