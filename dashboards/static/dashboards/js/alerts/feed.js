// What is open, over a WebSocket, or by polling while none can be had. Every frame is whole.
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 10000;
const POLL_AFTER_FAILURES = 2;
const POLL_MS = 2000;
const SIGNED_OUT = 4401;

export function followAlerts({ socketPath, framePath, onFrame }) {
  const url = new URL(socketPath, location.href);
  url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  let failures = 0;
  let retry = null;
  let poll = null;
  let leaving = false;

  function open() {
    const socket = new WebSocket(url);
    socket.addEventListener("message", (event) => {
      failures = 0;
      clearTimeout(poll);
      poll = null;
      onFrame(JSON.parse(event.data));
    });
    socket.addEventListener("close", (event) => {
      if (leaving || event.code === SIGNED_OUT) return;
      failures += 1;
      if (failures >= POLL_AFTER_FAILURES && poll === null) poll = setTimeout(ask, 0);
      const wait = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures, 8));
      retry = setTimeout(open, wait * (0.75 + Math.random() / 2));
    });
  }

  async function ask() {
    try {
      const answer = await fetch(framePath, { redirect: "manual", signal: AbortSignal.timeout(5000) });
      if (answer.ok) onFrame(await answer.json());
    } catch {
      // The next poll may be luckier; the badge keeps what it knew.
    }
    if (poll !== null) poll = setTimeout(ask, POLL_MS);
  }

  window.addEventListener("pagehide", () => {
    leaving = true;
    clearTimeout(retry);
    clearTimeout(poll);
  });
  open();
}
