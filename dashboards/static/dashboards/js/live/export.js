// Files of what is on the page, made here: what is shown may be paused, filtered and sorted, and no server knows that.
import { loadOf } from "./history.js";

const RISKY = /^[=+\-@\t\r]/;
const EVENTS = ["residency", "connected", "lag_s", "blocks", "losses", "check_error_blocks", "check_wrong_share"];
const SPREADS = ["p50", "p95", "p99"];

export function exportFrame(frame) {
  save("pointsman-frame.json", "application/json", JSON.stringify(frame));
}

// entries: the rows of the table in their order, see table.js.
export function exportTable(frame, entries) {
  const header = [
    "time_unix_s", "name", "state", "ejected", "stale", "decision_hit_tokens", "decision_new_tokens", "decision_queued_tokens", "decision_p_token",
    "decision_bs", "decision_score", "decision_out", "bs", "running", "waiting", "queued_prefill_tokens", "kv_use", "prefix_blocks", "requests",
    "requests_per_s", "errors", "hit_ratio", "mean_new_tokens", "age_s", "reported_age_s", ...SPREADS.map((rank) => `ttft_s_${rank}`), ...SPREADS.map((rank) => `score_${rank}`),
    ...EVENTS.map((name) => `events_${name}`),
  ];
  const lines = entries.map(({ name, row, candidate }) => [
    frame.time_unix_s, name, row.state, row.ejected, row.stale, candidate?.hit_tokens, candidate?.new_tokens, candidate?.queued_prefill_tokens, candidate?.p_token,
    candidate?.bs, candidate?.score, candidate?.filtered, row.bs, row.running, row.waiting, row.queued_prefill_tokens, row.kv_use, row.prefix_blocks, row.requests,
    row.requests_per_s, row.errors, row.hit_ratio, row.mean_new_tokens, row.age_s, row.reported_age_s, ...SPREADS.map((rank) => row.ttft_s[rank]), ...SPREADS.map((rank) => row.score[rank]),
    ...EVENTS.map((name) => row.events[name]),
  ]);
  saveCsv("pointsman-instances.csv", [header, ...lines]);
}

// shown: { columns, apart, spanS }, see history.js; one line a span of what is selected, and of each instance set apart.
export function exportHistory({ columns, apart, spanS }) {
  const header = [
    "start_unix_s", "instance", "requests", "hit_ratio", ...SPREADS.map((rank) => `ttft_s_${rank}`), ...SPREADS.map((rank) => `tpot_s_${rank}`),
    ...SPREADS.map((rank) => `score_${rank}`), "load_over_mean",
  ];
  const lineOf = (instance) => ({ atS, column }) => [
    Math.round((atS - spanS / 2) * 1000) / 1000, instance, column.requests, column.hit_ratio, ...SPREADS.map((rank) => column.ttft_s[rank]), ...SPREADS.map((rank) => column.tpot_s[rank]),
    ...SPREADS.map((rank) => column.score[rank]), loadOf(column),
  ];
  saveCsv("pointsman-history.csv", [header, ...columns.map(lineOf("")), ...apart.flatMap((one) => one.columns.map(lineOf(one.instance)))]);
}

function saveCsv(name, lines) {
  save(name, "text/csv;charset=utf-8", lines.map((line) => `${line.map(field).join(",")}\r\n`).join(""));
}

// What nobody said stays empty; a text is kept from being read as a formula.
function field(value) {
  if (value == null) return "";
  if (typeof value !== "string") return String(value);
  const text = RISKY.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function save(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
