// What the plane shows of a frame: one mark an instance.
//
// "decision": where each instance stood for one decision, exactly as the router computed it.
// "now": where the average request of the last minute would land, from the fleet's present state.
const LEAST_RADIUS = 4;
const MOST_RADIUS = 9;

export function marksOf(frame, decision, view) {
  const radius = radii(frame.instances);
  if (view === "decision" && decision) return decisionMarks(frame, decision, radius);
  return nowMarks(frame, decision, radius);
}

// Whether the decision's own numbers say that it was made with the plain product, so that iso-score lines are exact.
export function isProduct(decision) {
  const scored = decision.candidates.filter((candidate) => candidate.score != null);
  return (
    scored.length > 0 &&
    scored.every((candidate) => {
      const product = candidate.p_token ** decision.a * candidate.bs ** decision.b;
      return Math.abs(product - candidate.score) <= 1e-3 * Math.max(product, candidate.score);
    })
  );
}

function decisionMarks(frame, decision, radius) {
  const rows = new Map(frame.instances.map((row) => [row.name, row]));
  const winner = decision.candidates.find((candidate) => candidate.instance === decision.chosen);
  return decision.candidates.map((candidate, rank) => ({
    name: candidate.instance,
    x: Math.log10(Math.max(1, candidate.p_token)),
    y: Math.log10(Math.max(1, candidate.bs)),
    radius: radius(rows.get(candidate.instance)),
    kind: candidate.filtered ? "out" : candidate === winner ? "chosen" : "candidate",
    rank,
    candidate,
    row: rows.get(candidate.instance) ?? null,
    timesChosen: winner?.score && candidate.score != null ? candidate.score / winner.score : null,
  }));
}

function nowMarks(frame, decision, radius) {
  const known = frame.instances.map((row) => row.mean_new_tokens).filter((value) => value != null);
  const typical = known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : 1;
  return frame.instances.map((row) => {
    const pToken = Math.max(1, row.queued_prefill_tokens + (row.mean_new_tokens ?? typical));
    const takesRequests = !row.stale && !row.ejected && (row.state === "ready" || row.state === "warming");
    return {
      name: row.name,
      x: Math.log10(pToken),
      y: Math.log10(row.bs + 1),
      radius: radius(row),
      kind: !takesRequests ? "out" : row.name === decision?.chosen ? "chosen" : "candidate",
      rank: pToken * (row.bs + 1),
      candidate: null,
      row,
      pToken,
      timesChosen: null,
    };
  });
}

// Area says traffic: the square root of the share of the busiest instance.
function radii(instances) {
  const most = Math.max(...instances.map((row) => row.requests_per_s), 1e-9);
  const scale = instances.length > 24 ? 0.7 : 1;
  return (row) => {
    const share = row ? Math.sqrt(row.requests_per_s / most) : 0;
    return scale * (LEAST_RADIUS + (MOST_RADIUS - LEAST_RADIUS) * share);
  };
}
