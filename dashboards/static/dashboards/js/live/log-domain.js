// The visible range of one log axis. It grows at once when something would leave it, and shrinks only after what it
// shows has been much smaller for a while, so that the picture stands still while dots move.
const SHRINK_BELOW = 0.62;
const SHRINK_AFTER_MS = 4000;

export class LogDomain {
  #floor;
  #leastSpan;
  #margin;
  #roomySinceMs = null;

  // floor: lowest value ever shown; leastSpan: decades shown at least; margin: decades kept free at either end.
  constructor({ floor, leastSpan, margin }) {
    this.#floor = Math.log10(floor);
    this.#leastSpan = leastSpan;
    this.#margin = margin;
    this.low = this.#floor;
    this.high = this.#floor + leastSpan;
    this.isFitted = false;
  }

  // Takes the extremes of what is to be shown (log10); returns whether the range changed.
  fit(low, high, nowMs) {
    const [wantedLow, wantedHigh] = this.#wanted(low, high);
    const outside = wantedLow < this.low - 1e-9 || wantedHigh > this.high + 1e-9;
    const roomy = wantedHigh - wantedLow < (this.high - this.low) * SHRINK_BELOW;
    if (!roomy) this.#roomySinceMs = null;
    else this.#roomySinceMs ??= nowMs;
    const shrink = roomy && nowMs - this.#roomySinceMs > SHRINK_AFTER_MS;
    if (this.isFitted && !outside && !shrink) return false;
    const keepOld = this.isFitted && !shrink;
    this.low = keepOld ? Math.min(this.low, wantedLow) : wantedLow;
    this.high = keepOld ? Math.max(this.high, wantedHigh) : wantedHigh;
    this.isFitted = true;
    this.#roomySinceMs = null;
    return true;
  }

  #wanted(low, high) {
    const from = Math.max(this.#floor, low - this.#margin);
    const to = high + this.#margin;
    const missing = Math.max(0, this.#leastSpan - (to - from));
    return [Math.max(this.#floor, from - missing / 2), Math.max(to + missing / 2, this.#floor + this.#leastSpan)];
  }
}

// Ticks of a log range: decades labelled always, 2 and 5 labelled where few decades are visible.
export function logTicks(low, high) {
  const ticks = [];
  const fine = high - low < 2.4;
  for (let decade = Math.floor(low); decade <= Math.ceil(high); decade += 1) {
    for (const digit of [1, 2, 5]) {
      const at = decade + Math.log10(digit);
      if (at >= low && at <= high) ticks.push({ at, value: digit * 10 ** decade, labelled: digit === 1 || fine });
    }
  }
  return ticks;
}
