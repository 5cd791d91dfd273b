// Where log10 coordinates lie on the canvas.
export const PAD = { left: 46, right: 12, top: 20, bottom: 40 };

export function pixelOf({ x, y }, { width, height }, rangeX, rangeY) {
  return {
    x: PAD.left + ((x - rangeX.low) / (rangeX.high - rangeX.low)) * (width - PAD.left - PAD.right),
    y: height - PAD.bottom - ((y - rangeY.low) / (rangeY.high - rangeY.low)) * (height - PAD.top - PAD.bottom),
  };
}
