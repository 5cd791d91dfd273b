// The exact numbers of what is under the pointer.
import { NONE, compact, integer } from "../format.js";
import { stateOf } from "./table.js";

export class Tip {
  #element;
  #title;
  #list;

  constructor(element) {
    this.#element = element;
    this.#title = element.querySelector("h3");
    this.#list = element.querySelector("dl");
  }

  show(mark, at) {
    const title = mark?.row ? `${mark.name} · ${stateOf(mark.row)}` : mark?.name;
    this.showFacts(mark && { title, facts: factsOf(mark) }, at);
  }

  // { title, facts: [[term, value]] } at a point of the stage, or null for nothing.
  showFacts(found, at) {
    this.#element.hidden = found === null;
    if (found === null) return;
    this.#title.textContent = found.title;
    this.#list.replaceChildren(...found.facts.flatMap(([term, value]) => [make("dt", term), make("dd", value)]));
    this.#place(at);
  }

  #place({ x, y }) {
    const { offsetWidth: width, offsetHeight: height, offsetParent: stage } = this.#element;
    const left = x + 16 + width < stage.clientWidth ? x + 16 : Math.max(0, x - 16 - width);
    const top = Math.min(Math.max(0, y - height / 2), stage.clientHeight - height);
    this.#element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }
}

function factsOf({ candidate, row, timesChosen, pToken }) {
  if (!candidate) {
    return [
      ["P-token of a typical request", integer(pToken)],
      ["queued prefill", integer(row.queued_prefill_tokens)],
      ["BS with it", integer(row.bs + 1)],
      ["product", compact(pToken * (row.bs + 1))],
    ];
  }
  const facts = [
    ["hit", integer(candidate.hit_tokens)],
    ["new", integer(candidate.new_tokens)],
    ["queued prefill", integer(candidate.queued_prefill_tokens)],
    ["P-token", integer(candidate.p_token)],
    ["BS", integer(candidate.bs)],
  ];
  if (candidate.filtered) return [...facts, ["out", candidate.filtered]];
  return [...facts, ["score", compact(candidate.score)], ["against the chosen", timesChosen == null ? NONE : `${timesChosen.toFixed(2)}×`]];
}

function make(tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
}
