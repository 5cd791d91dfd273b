// Lines of equal score. In log-log space P^a * BS^b = s is the straight line a*x + b*y = log10(s).
const LEVELS = [1, 3];

// The lines that cross the visible range, as [{ level, from: [x, y], to: [x, y] }] in log10 coordinates; `from` is the
// end with the larger y.
export function isoLines({ a, b }, x, y) {
  const low = a * x.low + b * y.low;
  const high = a * x.high + b * y.high;
  const sparse = high - low > 6;
  const lines = [];
  for (let decade = Math.floor(low); decade <= Math.ceil(high); decade += 1) {
    for (const digit of sparse ? [1] : LEVELS) {
      const line = isoLine({ a, b }, decade + Math.log10(digit), x, y);
      if (line) lines.push({ level: digit * 10 ** decade, ...line });
    }
  }
  return lines;
}

// The part of one line inside the visible range, or null.
export function isoLine({ a, b }, logScore, x, y) {
  const ends = [];
  if (b !== 0) {
    for (const at of [x.low, x.high]) ends.push([at, (logScore - a * at) / b]);
  }
  if (a !== 0) {
    for (const at of [y.low, y.high]) ends.push([(logScore - b * at) / a, at]);
  }
  const inside = ends.filter(([px, py]) => within(px, x) && within(py, y));
  if (inside.length < 2) return null;
  inside.sort((one, other) => other[1] - one[1] || one[0] - other[0]);
  return { from: inside[0], to: inside[inside.length - 1] };
}

function within(value, { low, high }) {
  return value >= low - 1e-9 && value <= high + 1e-9;
}
