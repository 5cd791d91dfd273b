// When the page draws. Every animation frame that changes anything costs a style, a layout, a paint and a commit of the
// page, however little it was; so all that moves is drawn in the same ones, and they are no more than are needed.

// Thirty pictures a second are smooth; so many instances that no eye follows each are drawn half as often.
const SMOOTH_MS = 30;
const CALM_MS = 60;
const MANY_INSTANCES = 24;
// An animation frame comes up to this much early or late.
const SLACK_MS = 9;

export class Beat {
  #everyMs = SMOOTH_MS;
  #lastMs = -Infinity;
  #due = new Set();
  #isAsked = false;

  setInstances(count) {
    this.#everyMs = count > MANY_INSTANCES ? CALM_MS : SMOOTH_MS;
  }

  // show(now) is called in the next animation frame that is due; once, however often it was asked for until then.
  ask(show) {
    this.#due.add(show);
    if (this.#isAsked) return;
    this.#isAsked = true;
    const waitMs = this.#lastMs + this.#everyMs - SLACK_MS - performance.now();
    if (waitMs > 0) setTimeout(() => this.#request(), waitMs);
    else this.#request();
  }

  #request() {
    requestAnimationFrame((now) => {
      this.#isAsked = false;
      this.#lastMs = now;
      const due = [...this.#due];
      this.#due.clear();
      for (const show of due) show(now);
    });
  }
}
