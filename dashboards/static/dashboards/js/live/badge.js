// The connection badge: what we know of the data's age, in one word and a number.
import { age } from "../format.js";
import { setText } from "./changes.js";

const STALE_AFTER_S = 3;
const WORDS = { connecting: "connecting", live: "live", polling: "polling", reconnecting: "reconnecting" };

export class Badge {
  #element;
  #announce;
  #link = "connecting";
  #paused = false;
  #frame = null;
  #receivedMs = 0;
  #shownState = null;

  constructor(element, announce) {
    this.#element = element;
    this.#announce = announce;
    // Frames show it as they come; this is for when they do not.
    setInterval(() => this.#show(), 1000);
  }

  setLink(link) {
    if (link === this.#link) return;
    this.#link = link;
    this.#show();
  }

  setPaused(paused) {
    this.#paused = paused;
    this.#show();
  }

  setFrame(frame, receivedMs) {
    this.#frame = frame;
    this.#receivedMs = receivedMs;
    this.#show();
  }

  // Seconds since the youngest worker was heard; null before any was.
  #ageS() {
    const ages = (this.#frame?.workers ?? []).map((worker) => worker.age_s);
    if (ages.length === 0) return null;
    return Math.min(...ages) + (performance.now() - this.#receivedMs) / 1000;
  }

  #show() {
    const ageS = this.#ageS();
    const state = this.#state(ageS);
    const word = state === "stale" || state === "paused" ? state : WORDS[this.#link];
    const text = ageS === null || state === "connecting" ? word : `${word} · ${age(ageS)}`;
    setText(this.#element, text);
    if (state !== this.#shownState) {
      this.#element.dataset.state = state;
      if (this.#shownState !== null) this.#announce(word);
      this.#shownState = state;
    }
  }

  #state(ageS) {
    if (this.#paused) return "paused";
    const connected = this.#link === "live" || this.#link === "polling";
    if (connected && ageS !== null && ageS > STALE_AFTER_S) return "stale";
    return this.#link;
  }
}
