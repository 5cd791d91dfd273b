// Numbers as people read them. "–" means that nobody said, which is never the same as zero.
export const NONE = "–";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function integer(value) {
  return value == null ? NONE : whole.format(value);
}

// 61400 -> "61.4k": three digits that count.
export function compact(value) {
  if (value == null) return NONE;
  for (const [size, suffix] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(value) >= size * 0.9995) return `${digits3(value / size)}${suffix}`;
  }
  return digits3(value);
}

export function percent(share, digits = 1) {
  return share == null ? NONE : `${(share * 100).toFixed(digits)} %`;
}

export function ratio(value, digits = 2) {
  return value == null ? NONE : value.toFixed(digits);
}

export function perSecond(value) {
  if (value == null) return NONE;
  return value >= 100 ? whole.format(value) : value.toFixed(1);
}

// Two durations in the unit of the larger one: { text: "104 / 545", unit: "ms" }.
export function durations(seconds) {
  const known = seconds.filter((value) => value != null);
  if (known.length === 0) return { text: NONE, unit: "" };
  const inMs = Math.max(...known) < 10;
  const shown = seconds.map((value) => {
    if (value == null) return NONE;
    return inMs ? digits3(value * 1000) : value.toFixed(1);
  });
  return { text: shown.join(" / "), unit: inMs ? "ms" : "s" };
}

export function age(seconds) {
  if (seconds == null) return NONE;
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

function digits3(value) {
  const size = Math.abs(value);
  if (size >= 100 || value === 0) return value.toFixed(0);
  if (size >= 10) return Number.isInteger(value) ? String(value) : value.toFixed(1);
  return Number.isInteger(value) ? String(value) : value.toFixed(2);
}
