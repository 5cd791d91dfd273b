// How one strip of the history looks: lines over time, with what happened as marks at the top. It is told a scene and paints
// it; it remembers nothing.
import { PAD, leftOf } from "../strip-view.js";

const DASHES = { solid: [], dash: [5, 3], dot: [2, 3] };
// Marks nearer than this share one sign.
const CROWDED_PX = 11;

export class LinesPainter {
  #draw;
  #palette;

  constructor(context) {
    this.#draw = context;
  }

  setPalette(palette) {
    this.#palette = palette;
  }

  // scene: { fromS, toS, low, high, values: texts of low, middle and high, times: texts of begin, middle and end,
  //          series: [{ points: [[s, value]], color: a name of the palette, dash, weight, gapS }],
  //          events: [{ at_s, sign, isAlert }], thenS, atS }
  paint(scene, size) {
    paintLines(this.#draw, { ...scene, ...size }, this.#palette);
    return false;
  }
}

function paintLines(draw, scene, palette) {
  const { width, height } = scene;
  draw.clearRect(0, 0, width, height);
  draw.font = `${palette.size}px ${palette.font}`;
  draw.textBaseline = "middle";
  const place = placer(scene, leftOf(palette.size));
  paintAxes(draw, scene, place, palette);
  for (const event of scene.events) paintUpright(draw, place.x(event.at_s), scene, event.isAlert ? palette.bad : palette.faint, [1, 3]);
  paintSigns(draw, scene, place, palette);
  if (scene.thenS !== null) paintUpright(draw, place.x(scene.thenS), scene, palette.text, DASHES.dash);
  draw.save();
  draw.beginPath();
  draw.rect(place.left, 0, width - place.left, height);
  draw.clip(); // what is older than the range would run over the numbers of the axis
  for (const one of scene.series) paintSeries(draw, one, place, palette);
  draw.restore();
  if (scene.atS !== null) paintUpright(draw, place.x(scene.atS), scene, palette.muted, []);
}

function placer({ width, height, fromS, toS, low, high }, left) {
  const across = (width - left - PAD.right) / (toS - fromS || 1);
  const up = (height - PAD.top - PAD.bottom) / (high - low || 1);
  return { left, x: (s) => left + (s - fromS) * across, y: (value) => height - PAD.bottom - (Math.min(high, Math.max(low, value)) - low) * up };
}

function paintAxes(draw, { width, height, fromS, toS, low, high, values, times }, place, palette) {
  draw.lineWidth = 1;
  draw.strokeStyle = palette.lineSoft;
  draw.fillStyle = palette.faint;
  draw.textAlign = "right";
  [low, (low + high) / 2, high].forEach((value, at) => {
    const y = Math.round(place.y(value)) + 0.5;
    line(draw, place.left, y, width - PAD.right, y);
    draw.fillText(values[at], place.left - 6, y);
  });
  ["left", "center", "right"].forEach((align, at) => {
    draw.textAlign = align;
    draw.fillText(times[at], place.x(fromS + (at / 2) * (toS - fromS)), height - PAD.bottom / 2);
  });
}

function paintSeries(draw, { points, color, dash, weight, gapS }, place, palette) {
  draw.strokeStyle = draw.fillStyle = palette[color];
  draw.lineWidth = weight;
  draw.lineJoin = "round";
  draw.setLineDash(DASHES[dash]);
  draw.beginPath();
  let last = null;
  for (const [s, value] of points) {
    if (value == null) {
      last = null;
      continue;
    }
    if (last !== null && s - last <= gapS) draw.lineTo(place.x(s), place.y(value));
    else draw.moveTo(place.x(s), place.y(value));
    last = s;
  }
  draw.stroke();
  draw.setLineDash([]);
  paintLonely(draw, points, place, gapS);
}

// A point without neighbours is no line, and still a fact.
function paintLonely(draw, points, place, gapS) {
  const known = points.filter(([, value]) => value != null);
  known.forEach(([s, value], at) => {
    const isNear = (other) => other !== undefined && Math.abs(other[0] - s) <= gapS;
    if (isNear(known[at - 1]) || isNear(known[at + 1])) return;
    draw.beginPath();
    draw.arc(place.x(s), place.y(value), 1.6, 0, 2 * Math.PI);
    draw.fill();
  });
}

function paintSigns(draw, { events }, place, palette) {
  draw.textAlign = "center";
  let last = -Infinity;
  for (const event of events) {
    const x = place.x(event.at_s);
    if (x - last < CROWDED_PX) continue;
    last = x;
    draw.fillStyle = event.isAlert ? palette.bad : palette.text;
    draw.fillText(event.sign, x, PAD.top / 2);
  }
}

function paintUpright(draw, x, { height }, color, dash) {
  draw.strokeStyle = color;
  draw.lineWidth = 1;
  draw.setLineDash(dash);
  line(draw, Math.round(x) + 0.5, PAD.top, Math.round(x) + 0.5, height - PAD.bottom);
  draw.setLineDash([]);
}

function line(draw, fromX, fromY, toX, toY) {
  draw.beginPath();
  draw.moveTo(fromX, fromY);
  draw.lineTo(toX, toY);
  draw.stroke();
}
