// Where the labels of dots go. Each label tries places near its dot, then further out with a leader line; a label that
// fits nowhere is left out: hovering the dot or its table row names it.
const NEAR = 6;
const FAR = 20;
const HEIGHT = 13;
// More labels than this would hide the dots; the least important go without.
const MOST = 18;
const DIRECTIONS = [[1, 0], [-1, 0], [0, -1], [0, 1], [1, -1], [-1, -1], [1, 1], [-1, 1]];

// marks: [{ x, y, radius, text, width, mustShow, place }] in order of importance, pixels.
// Returns the same marks with `place` set to { dx, dy, align, leader } or null.
// bounds: { left, right, top, bottom } that labels must not leave.
export function placeLabels(marks, bounds) {
  const taken = marks.map(({ x, y, radius }) => box(x - radius, y - radius, 2 * radius, 2 * radius));
  marks.forEach((mark, importance) => {
    const places = importance < MOST || mark.mustShow ? candidates(mark) : [];
    const free = places.find((place) => isFree(labelBox(mark, place), taken, bounds));
    mark.place = free ?? (mark.mustShow ? places.find((place) => isWithin(labelBox(mark, place), bounds)) ?? places[0] : null);
    if (mark.place) taken.push(labelBox(mark, mark.place));
  });
  return marks;
}

function candidates(mark) {
  const places = [];
  if (mark.place) places.push(mark.place);
  for (const [gap, leader] of [[NEAR, false], [FAR, true], [FAR * 2, true]]) {
    for (const [sx, sy] of DIRECTIONS) {
      const distance = mark.radius + gap;
      const along = sx !== 0 && sy !== 0 ? distance * 0.75 : distance;
      places.push({ dx: sx * along, dy: sy * along, align: sx > 0 ? "left" : sx < 0 ? "right" : "center", leader });
    }
  }
  return places;
}

function labelBox(mark, { dx, dy, align }) {
  const shift = align === "left" ? 0 : align === "right" ? -mark.width : -mark.width / 2;
  return box(mark.x + dx + shift, mark.y + dy - HEIGHT / 2, mark.width, HEIGHT);
}

function isFree(wanted, taken, bounds) {
  return isWithin(wanted, bounds) && !taken.some((other) => overlaps(wanted, other));
}

function isWithin(wanted, { left, right, top, bottom }) {
  return wanted.left >= left && wanted.right <= right && wanted.top >= top && wanted.bottom <= bottom;
}

function overlaps(a, b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

function box(left, top, width, height) {
  return { left, top, right: left + width, bottom: top + height };
}
