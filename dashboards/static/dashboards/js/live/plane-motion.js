// Where the dots and the axes of the score plane are on their way. A scene says from where to where they go; where they are
// at a moment is the same for who paints them and for who asks what lies under the pointer.

// A decision is jumped to and then read; the present glides from frame to frame.
const PACES = { decision: { ms: 450, ease: (part) => 1 - (1 - part) ** 3 }, now: { ms: 250, ease: (part) => part } };

// scene: { move: { beganMs, pace, x: { from, to }, y: { from, to } }, dots: [{ from, to, isFar }] }; ranges are { low, high }.
// Returns { isOver, x, y, dots: the same with `at` and `labelAlpha` }.
export function placesAt({ move, dots }, nowMs) {
  const { ms, ease } = PACES[move.pace];
  const part = Math.min(1, Math.max(0, (nowMs - move.beganMs) / ms));
  const eased = ease(part);
  return {
    isOver: part === 1,
    x: mixRange(move.x, eased),
    y: mixRange(move.y, eased),
    dots: dots.map((dot) => ({
      ...dot,
      at: { x: mix(dot.from.x, dot.to.x, eased), y: mix(dot.from.y, dot.to.y, eased) },
      labelAlpha: dot.isFar ? Math.max(0, part * 2 - 1) : 1,
    })),
  };
}

function mixRange({ from, to }, part) {
  return { low: mix(from.low, to.low, part), high: mix(from.high, to.high, part) };
}

function mix(from, to, part) {
  return from + (to - from) * part;
}
