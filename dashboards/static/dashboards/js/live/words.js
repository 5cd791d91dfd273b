// Sentences of the live page.
import { compact } from "../format.js";
import { isProduct } from "./marks.js";
import { spanWords } from "./time-range.js";

export function planeCaption(decision, view) {
  if (view === "now") return "Where an average request of the last minute would land now. Lower left is better; amber sparks are requests being placed.";
  if (!decision) return "Each dot will be an instance as one request sees it; the smallest product of P-token and BS wins.";
  const scored = decision.candidates.filter((candidate) => candidate.score != null);
  if (decision.chosen === null) return "Every instance was out for this request; the table says why.";
  if (!isProduct(decision)) return `Chosen by ${decision.scorer}: its score is not the plain product, so no line of equal score is drawn through the chosen one.`;
  if (scored.length < 2) return `${decision.chosen} was the only candidate, with a score of ${compact(scored[0].score)}.`;
  if (scored[1].score === scored[0].score) {
    return `A tie at ${compact(scored[0].score)}: of the best, ${decision.chosen} was chosen least recently.`;
  }
  const gap = scored[1].score / scored[0].score;
  return `Coming from the lower left, the amber line of equal score (${compact(scored[0].score)}) meets ${decision.chosen} first; the next best, ${scored[1].instance}, scores ${gap.toFixed(2)}×.`;
}

// line: the server's ScoreLine, or null before it has answered.
export function lineCaption(line) {
  if (line === null) return "";
  if (!line.enabled) return "The alert on this tail is switched off.";
  if (line.score === null) return `The alert's line appears once there are ${line.least_reference} decisions in the ten minutes before the last ${line.judged_s} s.`;
  return `The alert fires when ${Math.round(line.share * 100)} % of a workload's decisions in ${line.judged_s} s lie above its line: ${line.factor} × the usual P95, for ${line.workload} now ${compact(line.score)}.`;
}

const VIEWS = {
  time: "Each cell counts the requests whose product, at the moment they were placed, fell there. Narrow and low is good.",
  histogram: "Requests by the product at which they were placed. Narrow and low is good.",
  instance: "The last minute by instance: a dash is its P50, a triangle its P95, a red dash where its alert begins.",
};

export function spreadCaption(view, line) {
  return `${VIEWS[view] ?? VIEWS.time} ${lineCaption(line)}`.trim();
}

export function spreadSpan(view, range) {
  if (view === "instance" || range.isLive) return "last 60 s";
  if (range.fromS !== null) return `${spanWords(range)} UTC`;
  return range.key === "60" ? "last hour" : range.key === "120" ? "last 2 hours" : `last ${range.key} min`;
}

const NOT_WHOLE = "Other web processes are not heard, because Redis does not answer this one: requests and instances of routers that report to them are missing here, or stale.";

// What the numbers leave out, and what is counted where a filter is set; "" where they are of everything.
export function scopeNote(selection, frame) {
  return [frame.whole ? "" : NOT_WHOLE, selectionNote(selection, frame)].filter(Boolean).join(" ");
}

function selectionNote({ model, workload }, frame) {
  const instances = `${frame.instances.length} ${frame.instances.length === 1 ? "instance" : "instances"} that serve ${model}`;
  if (workload && model) return `Numbers and dots of placed requests: workload ${workload}, on all its models. Instances: the ${instances}; their own rows count every workload.`;
  if (workload) return `Numbers and dots of placed requests: workload ${workload}. The rows of instances count every workload.`;
  return model ? `Numbers: requests at the ${instances}.` : "";
}
