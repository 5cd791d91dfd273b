// Frames from the server: over a WebSocket, or by polling while none can be had.
//
// The server sends at least one frame a second, so silence means a dead connection. Every frame is whole: what was
// missed while away needs no catching up.
const SILENCE_MS = 5000;
const FIRST_RETRY_MS = 300;
const LONGEST_RETRY_MS = 8000;
const POLL_AFTER_FAILURES = 2;
const POLL_MS = 1000;
const SIGNED_OUT = 4401;
const CONNECTING = 0;

export class Connection {
  #onFrame;
  #onState;
  #frameUrl;
  #socketUrl;
  #socket = null;
  #failures = 0;
  #silence = null;
  #retry = null;
  #poll = null;
  #query = "";
  #isStarted = false;

  constructor({ socketPath, framePath, onFrame, onState }) {
    const socketUrl = new URL(socketPath, location.href);
    socketUrl.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    this.#socketUrl = socketUrl;
    this.#frameUrl = framePath;
    this.#onFrame = onFrame;
    this.#onState = onState;
  }

  // Ask for frames of another selection: { model, workload }. What comes until then is of the old one.
  select(selection) {
    const wanted = queryOf(selection);
    if (wanted === this.#query) return;
    this.#query = wanted;
    if (!this.#isStarted) return;
    const old = this.#socket;
    this.#socket = null;
    // A browser complains about a socket that is closed before it is open.
    if (old !== null && old.readyState === CONNECTING) old.addEventListener("open", () => old.close());
    else old?.close();
    this.#open();
    if (this.#poll !== null) this.#pollOnce();
  }

  start() {
    this.#isStarted = true;
    this.#open();
    window.addEventListener("online", () => this.#hurry());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.#hurry();
    });
  }

  #open() {
    clearTimeout(this.#retry);
    this.#retry = null;
    this.#socketUrl.search = this.#query;
    const socket = new WebSocket(this.#socketUrl);
    this.#socket = socket;
    this.#watchSilence();
    socket.addEventListener("message", (event) => {
      if (socket !== this.#socket) return;
      this.#failures = 0;
      this.#stopPolling();
      this.#watchSilence();
      this.#onState("live");
      this.#onFrame(JSON.parse(event.data));
    });
    socket.addEventListener("close", (event) => {
      if (socket === this.#socket) this.#lost(event.code);
    });
  }

  #lost(code) {
    clearTimeout(this.#silence);
    this.#socket = null;
    if (code === SIGNED_OUT) {
      this.#signIn();
      return;
    }
    this.#failures += 1;
    if (this.#failures >= POLL_AFTER_FAILURES) {
      this.#startPolling();
    } else {
      this.#onState("reconnecting");
    }
    const wait = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(this.#failures - 1, 10));
    this.#retry = setTimeout(() => this.#open(), wait * (0.75 + Math.random() / 2));
  }

  #hurry() {
    if (this.#retry !== null) this.#open();
  }

  #watchSilence() {
    clearTimeout(this.#silence);
    const socket = this.#socket;
    this.#silence = setTimeout(() => {
      socket.close();
      if (socket === this.#socket) this.#lost(1006);
    }, SILENCE_MS);
  }

  #startPolling() {
    if (this.#poll !== null) return;
    const ask = async () => {
      await this.#pollOnce();
      if (this.#poll !== null) this.#poll = setTimeout(ask, POLL_MS);
    };
    this.#poll = setTimeout(ask, 0);
  }

  #stopPolling() {
    clearTimeout(this.#poll);
    this.#poll = null;
  }

  async #pollOnce() {
    try {
      const query = this.#query;
      const answer = await fetch(this.#frameUrl + query, { signal: AbortSignal.timeout(SILENCE_MS), redirect: "manual" });
      if (answer.type === "opaqueredirect") {
        this.#signIn();
        return;
      }
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const frame = await answer.json();
      if (this.#poll === null || query !== this.#query) return;
      this.#onState("polling");
      this.#onFrame(frame);
    } catch {
      if (this.#poll !== null) this.#onState("reconnecting");
    }
  }

  #signIn() {
    this.#stopPolling();
    location.reload();
  }
}

function queryOf(selection) {
  const query = new URLSearchParams(Object.entries(selection).filter(([, value]) => value));
  return query.size ? `?${query}` : "";
}
