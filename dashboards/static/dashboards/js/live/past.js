// Minutes of the past, as the server keeps them: asked for when the question changes, and again when there is news.
const EVERY_MS = 10_000;
const LIMIT_MS = 15_000;

export class Past {
  #path;
  #onAnswer;
  #onFailure;
  #query = null;
  #key = "";
  #asking = null;
  #timer = null;

  constructor({ path, onAnswer, onFailure }) {
    this.#path = path;
    this.#onAnswer = onAnswer;
    this.#onFailure = onFailure;
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && this.#query !== null) this.#ask();
    });
  }

  // question: { range: see time-range.js, model, workload, apart: [names], then }; answers carry the key of their range.
  ask({ range, model, workload, apart, then }) {
    const query = new URLSearchParams(range.query);
    for (const [key, value] of [["model", model], ["workload", workload], ["then", then]]) if (value) query.set(key, value);
    for (const name of apart) query.append("apart", name);
    const text = query.toString();
    if (text === this.#query) return;
    [this.#query, this.#key] = [text, range.key];
    this.#ask();
  }

  async #ask() {
    clearTimeout(this.#timer);
    this.#asking?.abort();
    const asking = (this.#asking = new AbortController());
    const [query, key] = [this.#query, this.#key];
    try {
      const answer = await fetch(`${this.#path}?${query}`, { signal: AbortSignal.any([asking.signal, AbortSignal.timeout(LIMIT_MS)]) });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const past = await answer.json();
      if (query === this.#query) this.#onAnswer({ ...past, key });
    } catch (error) {
      if (asking.signal.aborted) return;
      this.#onFailure(error);
    }
    if (!document.hidden) this.#timer = setTimeout(() => this.#ask(), EVERY_MS);
  }
}
