// Who waits for room now, and who was refused in the last minute and why; shown while something is limited. The page
// has it from the server at first (headline_texts.py). Whether instances can be full, frames do not say: it comes with the
// page, and with every answer about the past.
import { integer } from "../format.js";
import { setClass, setHidden, setText } from "./changes.js";

export class Door {
  #element;
  #number;
  #reasons;
  #words;
  #instancesFill;

  constructor(element) {
    this.#element = element;
    this.#number = element.querySelector(".stat-number");
    this.#reasons = element.querySelector("#door-reasons");
    this.#words = JSON.parse(element.dataset.words);
    this.#instancesFill = element.dataset.instancesFill === "true";
  }

  // Of the selected workload, or of all. instancesFill: whether instances can be full; null while only the page has said it.
  show({ workloads, selection }, instancesFill) {
    const rows = workloads.filter((row) => !selection.workload || row.name === selection.workload);
    const refused = new Map();
    for (const row of rows) for (const [reason, count] of Object.entries(row.refused)) refused.set(reason, (refused.get(reason) ?? 0) + count);
    const total = [...refused.values()].reduce((sum, count) => sum + count, 0);
    const waiting = rows.reduce((sum, row) => sum + row.queued, 0);
    const texts = [...refused].filter(([, count]) => count > 0).sort(([one], [other]) => (one < other ? -1 : 1));
    const isLimited = (instancesFill ?? this.#instancesFill) || waiting + total > 0 || rows.some((row) => row.inside !== null);
    setText(this.#number, `${integer(waiting)} / ${integer(total)}`);
    setText(this.#reasons, texts.map(([reason, count]) => `${integer(count)} ${this.#words[reason] ?? reason}`).join(" · ") || "none refused");
    setHidden(this.#element, !isLimited);
    setClass(this.#element, "is-busy", waiting + total > 0);
  }
}
