// What a frame of data changes is shown part by part, each part in an animation frame of its own, so that no task is long.
export class Turns {
  #beat;
  #parts;
  #due = new Set();

  // parts: functions that show something, the first one first. They are told whether all of it is wanted at once.
  constructor(beat, parts) {
    this.#beat = beat;
    this.#parts = parts;
  }

  // There is something new: every part has a turn. Those that still wait for one keep their place.
  ask() {
    for (const show of this.#parts) this.#due.add(show);
    this.#beat.ask(this.#turn);
  }

  // Every part at once: a person has asked for it.
  all() {
    this.#due.clear();
    for (const show of this.#parts) show(true);
  }

  #turn = () => {
    const [show] = this.#due;
    if (show === undefined) return;
    this.#due.delete(show);
    show(false);
    if (this.#due.size > 0) this.#beat.ask(this.#turn);
  };
}
