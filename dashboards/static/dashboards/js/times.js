// Moments are written in UTC; pointing at one says it in the reader's own time. Ages go on while the page stands.
const UNITS = [[1, "s", 120], [60, "min", 120], [3600, "h", 48], [86400, "d", Infinity]];
const seenMs = new WeakMap();

export function bindTimes() {
  document.addEventListener("pointerover", (event) => {
    const time = event.target.closest?.("time[datetime]");
    if (time && !time.title) time.title = titleOf(time);
  });
  document.addEventListener("visibilitychange", showAges);
  setInterval(showAges, 1000);
}

function titleOf(time) {
  const local = `${new Date(time.dateTime).toLocaleString()} local time`;
  return "age" in time.dataset ? `${time.dateTime.slice(0, 19).replace("T", " ")} UTC, ${local}` : local;
}

// From what the server said when it was sent: clocks differ.
function showAges() {
  if (document.hidden) return;
  const nowMs = performance.now();
  for (const time of document.querySelectorAll("time[data-age]")) {
    if (!seenMs.has(time)) seenMs.set(time, nowMs);
    const said = ageText(Number(time.dataset.age) + (nowMs - seenMs.get(time)) / 1000);
    if (time.textContent !== said) time.textContent = said;
  }
}

// The same as the server writes (numbers.py).
export function ageText(seconds) {
  const [unitS, unit] = UNITS.find(([unitS, , most]) => seconds < most * unitS);
  return `${Math.round(Math.max(0, seconds) / unitS)} ${unit}`;
}
