// Which time is shown: the newest minutes, or from one moment to another. Moments stand in the address in UTC, by minutes:
// from=2026-11-30T10:00Z. What cannot be read is refused with a reason, and the last minute is shown.
import { clock } from "./courses.js";

const FORM = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?Z$/;
const MINUTE_S = 60;
const LIVE = "1";

// state: see view-state.js; mostDays: the longest time that the server answers for.
// Returns { key, isLive, query, fromS, toS, refused }: `key` differs between different times, `query` is what to ask for.
export function timeRange(state, mostDays) {
  const [range, from, to] = ["range", "from", "to"].map((key) => state.get(key));
  if (!from && !to) return relative(range);
  const refused = refusalOf(from, to, mostDays);
  if (refused) return { ...relative(LIVE), refused };
  const [fromS, toS] = [secondsOf(from), secondsOf(to)];
  return { key: `${fromS}-${toS}`, isLive: false, query: { from: fromS, to: toS }, fromS, toS, refused: "" };
}

function relative(minutes) {
  return { key: minutes, isLive: minutes === LIVE, query: { minutes }, fromS: null, toS: null, refused: "" };
}

export function refusalOf(from, to, mostDays) {
  if (![from, to].every((text) => FORM.test(text) && !Number.isNaN(Date.parse(text)))) return "Both ends of a time are moments in UTC, such as 2026-11-30T10:00Z.";
  const spanS = secondsOf(to) - secondsOf(from);
  if (spanS <= 0) return "A time begins before it ends.";
  return spanS > mostDays * 86_400 ? `A time is at most ${mostDays} days long.` : "";
}

function secondsOf(text) {
  return Math.floor(Date.parse(text) / 1000);
}

// "10:00 to 11:00", with dates where it is not today.
export function spanWords({ fromS, toS }, nowS = Date.now() / 1000) {
  const day = (s) => new Date(s * 1000).toISOString().slice(0, 10);
  const isToday = day(fromS) === day(nowS) && day(toS) === day(nowS);
  return isToday ? `${clock(fromS)} to ${clock(toS)}` : day(fromS) === day(toS) ? `${day(fromS)} ${clock(fromS)} to ${clock(toS)}` : `${day(fromS)} ${clock(fromS)} to ${day(toS)} ${clock(toS)}`;
}

// Why nothing, or not all, of a time is there; "" where all of it is. past: the server's answer.
export function keptWords({ fromS, toS }, { kept_from_s: keptFromS }, keptHours, nowS = Date.now() / 1000) {
  if (fromS === null) return "";
  const since = `${new Date(keptFromS * 1000).toISOString().slice(0, 16).replace("T", " ")} UTC`;
  const kept = `The past is kept for ${keptHours} hours: at present since ${since}.`;
  if (fromS > nowS) return "This time has not begun yet.";
  if (toS <= keptFromS) return `Nothing is kept of this time. ${kept}`;
  return fromS < keptFromS - MINUTE_S ? `The beginning of this time is not kept. ${kept}` : "";
}

// The control: a button that says the time, and a dialog with two moments.
export class TimeRangeControl {
  #button;
  #dialog;
  #form;
  #state;
  #mostDays;

  constructor(button, dialog, state, mostDays) {
    [this.#button, this.#dialog, this.#form, this.#state, this.#mostDays] = [button, dialog, dialog.querySelector("form"), state, mostDays];
    button.addEventListener("click", () => this.#fill());
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#apply();
    });
    this.#form.addEventListener("input", () => this.#say(""));
  }

  show(range) {
    const isSet = range.fromS !== null;
    const text = isSet ? spanWords(range).replace(" to ", "–") : "From – to";
    if (this.#button.textContent !== text) this.#button.textContent = text;
    if (this.#button.getAttribute("aria-pressed") !== String(isSet)) this.#button.setAttribute("aria-pressed", String(isSet));
  }

  // What is set, else the last half hour.
  #fill() {
    const field = (s) => new Date(s * 1000).toISOString().slice(0, 16);
    const nowS = Math.floor(Date.now() / 60_000) * 60;
    const { fromS, toS } = timeRange(this.#state, this.#mostDays);
    this.#form.elements.from.value = field(fromS ?? nowS - 30 * MINUTE_S);
    this.#form.elements.to.value = field(toS ?? nowS);
    this.#say("");
  }

  #apply() {
    const [from, to] = ["from", "to"].map((name) => `${this.#form.elements[name].value.slice(0, 16)}Z`);
    const refused = refusalOf(from, to, this.#mostDays);
    this.#say(refused);
    if (refused) return;
    this.#state.set({ from, to });
    this.#dialog.close();
  }

  #say(text) {
    const error = this.#form.querySelector(".form-error");
    error.textContent = text;
    error.hidden = text === "";
  }
}
