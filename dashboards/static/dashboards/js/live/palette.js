// The tokens of the style sheet, as canvas and plots need them; told again whenever the theme changes.
const SERIES = Array.from({ length: 10 }, (_, index) => `series-${index + 1}`);
const NAMES = ["bg", "surface", "raised", "line", "line-soft", "text", "muted", "faint", "data", "data-deep", "chosen", "ok", "warn", "bad", ...SERIES];

export function readPalette() {
  const style = getComputedStyle(document.documentElement);
  const palette = Object.fromEntries(NAMES.map((name) => [camel(name), style.getPropertyValue(`--${name}`).trim()]));
  palette.font = getComputedStyle(document.body).fontFamily;
  return palette;
}

export function onPaletteChange(listener) {
  document.addEventListener("pointsman:theme", listener);
  matchMedia("(prefers-color-scheme: light)").addEventListener("change", listener);
}

function camel(name) {
  return name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
}
