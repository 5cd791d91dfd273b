// Moments are written in UTC; pointing at one says it in the reader's own time.
export function bindTimes() {
  document.addEventListener("pointerover", (event) => {
    const time = event.target.closest?.("time[datetime]");
    if (time && !time.title) time.title = `${new Date(time.dateTime).toLocaleString()} local time`;
  });
}
