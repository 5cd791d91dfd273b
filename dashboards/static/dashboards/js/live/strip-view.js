// Where moments lie on a strip of the history.
export const PAD = { right: 8, top: 16, bottom: 18 };

// Room for the numbers of the axis: "1000 ms".
export function leftOf(fontSize) {
  return Math.round(4.8 * fontSize);
}

export function timeAt(x, { fromS, toS }, { width }, fontSize) {
  const left = leftOf(fontSize);
  const share = (x - left) / Math.max(1, width - left - PAD.right);
  return fromS + Math.min(1, Math.max(0, share)) * (toS - fromS);
}
