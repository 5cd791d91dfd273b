// One strip: lines over time on a canvas, with what happened as marks at the top. It is told a scene and paints it.
const PAD = { right: 8, top: 16, bottom: 18 };
const DASHES = { solid: [], dash: [5, 3], dot: [2, 3] };
// Marks nearer than this share one sign.
const CROWDED_PX = 11;

// Room for the numbers of the axis: "1000 ms".
function leftOf(size) {
  return Math.round(4.8 * size);
}

export function timeAt(x, { fromS, toS, width, size }) {
  const left = leftOf(size);
  const share = (x - left) / Math.max(1, width - left - PAD.right);
  return fromS + Math.min(1, Math.max(0, share)) * (toS - fromS);
}

// scene: { width, height, fromS, toS, low, high, format, series: [{ points: [[s, value]], color, dash, weight, gapS }],
//          events: [{ at_s, sign, isAlert }], thenS, atS, clock }
export function paintLines(draw, scene, palette) {
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
  for (const one of scene.series) paintSeries(draw, one, place);
  draw.restore();
  if (scene.atS !== null) paintUpright(draw, place.x(scene.atS), scene, palette.muted, []);
}

function placer({ width, height, fromS, toS, low, high }, left) {
  const across = (width - left - PAD.right) / (toS - fromS || 1);
  const up = (height - PAD.top - PAD.bottom) / (high - low || 1);
  return { left, x: (s) => left + (s - fromS) * across, y: (value) => height - PAD.bottom - (Math.min(high, Math.max(low, value)) - low) * up };
}

function paintAxes(draw, { width, height, fromS, toS, low, high, format, clock }, place, palette) {
  draw.lineWidth = 1;
  draw.strokeStyle = palette.lineSoft;
  draw.fillStyle = palette.faint;
  draw.textAlign = "right";
  for (const value of [low, (low + high) / 2, high]) {
    const y = Math.round(place.y(value)) + 0.5;
    line(draw, place.left, y, width - PAD.right, y);
    draw.fillText(format(value), place.left - 6, y);
  }
  for (const [share, align] of [[0, "left"], [0.5, "center"], [1, "right"]]) {
    const s = fromS + share * (toS - fromS);
    draw.textAlign = align;
    draw.fillText(clock(s), place.x(s), height - PAD.bottom / 2);
  }
}

function paintSeries(draw, { points, color, dash, weight, gapS }, place) {
  draw.strokeStyle = draw.fillStyle = color;
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
