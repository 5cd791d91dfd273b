// Milliseconds on a clock that the page and the worker share.
export function sharedMs(ms = performance.now()) {
  return performance.timeOrigin + ms;
}
