// The buckets of score histograms, as workers send them: four an octave, bucket i holds 2^(i/4) .. 2^((i+1)/4).
// A histogram is flat: [bucket, count, bucket, count, ...].
import { compact } from "../format.js";

const PER_OCTAVE = 4;
const LEAST_ROWS = 14;

// Where a value lies among the buckets.
export function position(value) {
  return Math.log2(Math.max(1, value)) * PER_OCTAVE;
}

export function spanOf(bucket) {
  return `${compact(2 ** (bucket / PER_OCTAVE))} to ${compact(2 ** ((bucket + 1) / PER_OCTAVE))}`;
}

export function merged(histograms) {
  const total = new Map();
  for (const flat of histograms) {
    for (let index = 0; index < flat.length; index += 2) total.set(flat[index], (total.get(flat[index]) ?? 0) + flat[index + 1]);
  }
  return new Map([...total].sort(([one], [other]) => one - other));
}

// The q-quantile of merged histograms, interpolated inside its bucket on the log scale; null when empty.
export function quantile(total, q) {
  let count = 0;
  for (const value of total.values()) count += value;
  if (count === 0) return null;
  let seen = 0;
  for (const [bucket, value] of total) {
    if (seen + value >= q * count) return 2 ** ((bucket + (q * count - seen) / value) / PER_OCTAVE);
    seen += value;
  }
  return null;
}

// The visible buckets: all that hold anything and the alert's line, never fewer than LEAST_ROWS, and no jumping back by
// a row or two.
export function rowsOf(histograms, lineScore, before) {
  let low = Infinity;
  let high = -Infinity;
  for (const flat of histograms) {
    for (let index = 0; index < flat.length; index += 2) {
      low = Math.min(low, flat[index]);
      high = Math.max(high, flat[index]);
    }
  }
  if (low === Infinity) return before ?? { low: 24, high: 24 + 2 * LEAST_ROWS };
  low = Math.max(0, low - 1);
  high = Math.max(high, Math.ceil(position(lineScore))) + 2;
  if (high - low < LEAST_ROWS) {
    low = Math.max(0, low - Math.ceil((LEAST_ROWS - high + low) / 2));
    high = low + LEAST_ROWS;
  }
  const close = before && low >= before.low && high <= before.high && high - low > (before.high - before.low) * 0.7;
  return close ? before : { low, high };
}

// Ticks of an axis whose unit is the bucket: { values, texts }.
export function ticksOf({ low, high }) {
  const values = [];
  const texts = [];
  for (let decade = 0; position(10 ** decade) <= high; decade += 1) {
    for (const digit of high - low < 20 ? [1, 3] : [1]) {
      const at = position(digit * 10 ** decade);
      if (at < low || at > high) continue;
      values.push(at);
      texts.push(compact(digit * 10 ** decade));
    }
  }
  return { values, texts };
}
