// How wide texts are in the font of charts, in pixels; each is measured once.
const draw = new OffscreenCanvas(1, 1).getContext("2d");
const widths = new Map();

export function textWidth(text, { size, font }) {
  const key = `${size} ${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    draw.font = `${size}px ${font}`;
    width = draw.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}
