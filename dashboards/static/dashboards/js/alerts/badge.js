// The count in the rail and in the title, on every page; other scripts hear of changes by an event.
import { followAlerts } from "./feed.js";

export function bindAlertsBadge() {
  const badge = document.querySelector("[data-alerts-socket]");
  if (!badge) return;
  const title = document.title;
  let change = null;
  followAlerts({
    socketPath: badge.dataset.alertsSocket,
    framePath: badge.dataset.alertsFrame,
    onFrame: (frame) => {
      badge.hidden = frame.firing === 0;
      badge.querySelector("[data-count]").textContent = frame.firing;
      document.title = frame.firing ? `(${frame.firing}) ${title}` : title;
      if (frame.change === change) return;
      change = frame.change;
      document.dispatchEvent(new CustomEvent("pointsman:alerts", { detail: frame }));
    },
  });
}
