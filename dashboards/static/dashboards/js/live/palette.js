// The tokens of the style sheet, as canvas and plots need them; told again whenever the theme changes.
const SERIES = Array.from({ length: 10 }, (_, index) => `series-${index + 1}`);
const NAMES = ["bg", "surface", "raised", "line", "line-soft", "text", "muted", "faint", "data", "data-deep", "chosen", "ok", "warn", "bad", "apart-1", "apart-2", ...SERIES];

export function readPalette() {
  const style = getComputedStyle(document.documentElement);
  const palette = Object.fromEntries(NAMES.map((name) => [camel(name), style.getPropertyValue(`--${name}`).trim()]));
  const body = getComputedStyle(document.body);
  palette.font = body.fontFamily;
  // Text in charts is a little smaller than that around them.
  palette.size = Math.round(Number.parseFloat(body.fontSize)) - 2;
  return palette;
}

export function onPaletteChange(listener) {
  document.addEventListener("pointsman:theme", listener);
  matchMedia("(prefers-color-scheme: light)").addEventListener("change", listener);
}

function camel(name) {
  return name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
}
