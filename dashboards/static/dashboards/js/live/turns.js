// What a frame of data changes is shown part by part, each part in an animation frame of its own, so that no task is long.
export class Turns {
  #parts;
  #due = new Set();
  #next = 0;
  #request = null;

  // parts: functions that show something; each returns whether it had anything to show. They are told whether all of it
  // is wanted at once.
  constructor(parts) {
    this.#parts = parts;
  }

  // There is something new: every part has a turn. Those that still wait for one keep their place.
  ask() {
    this.#parts.forEach((_, at) => this.#due.add(at));
    this.#request ??= requestAnimationFrame(() => this.#turn());
  }

  // Every part at once: a person has asked for it.
  all() {
    this.#due.clear();
    for (const show of this.#parts) show(true);
  }

  #turn() {
    this.#request = null;
    for (let tried = 0; tried < this.#parts.length; tried += 1) {
      const at = this.#next;
      this.#next = (at + 1) % this.#parts.length;
      if (this.#due.delete(at) && this.#parts[at](false)) break;
    }
    if (this.#due.size > 0) this.#request = requestAnimationFrame(() => this.#turn());
  }
}
