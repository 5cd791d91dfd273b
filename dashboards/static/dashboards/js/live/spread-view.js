// Where a scene of the distribution (see spread-scenes.js) lies on its canvas.

// fontSize: of the texts around it. Returns { left, top, right, bottom } in pixels.
export function boxOf(scene, { width, height }, fontSize) {
  const isBars = scene.kind === "bars";
  const below = scene.isSlanted ? fontSize * 6 : isBars ? fontSize * 3.4 : fontSize * 2.2;
  const top = isBars ? fontSize * 1.4 * (scene.upright.length + 0.5) : 8;
  return { left: fontSize * 5, top, right: width - 12, bottom: height - below };
}

// Which column and bucket lie at a pixel; null outside.
export function placeAt({ x, y }, scene, size, fontSize) {
  const { left, top, right, bottom } = boxOf(scene, size, fontSize);
  if (x < left || x > right || y < top || y > bottom) return null;
  const { rows, kind, columns } = scene;
  if (kind === "bars") return { column: 0, bucket: Math.floor(rows.low + ((x - left) / (right - left)) * (rows.high - rows.low)) };
  return {
    column: Math.min(columns.length - 1, Math.floor(((x - left) / (right - left)) * columns.length)),
    bucket: Math.floor(rows.low + ((bottom - y) / (bottom - top)) * (rows.high - rows.low)),
  };
}
