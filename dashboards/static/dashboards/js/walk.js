// A list whose entries open beside it: the open one is marked, keys walk it. Marking follows the address, so it stays
// right when the list is refreshed, and after back and forward.
import { bindKeys } from "./keys.js";

export function bindWalk() {
  const links = () => [...document.querySelectorAll("[data-walk] tr:not([hidden]) .row-link")];
  const isOpen = (link) => new URL(link.href).pathname === location.pathname;

  function mark() {
    for (const link of links()) link.closest("tr").setAttribute("aria-selected", String(isOpen(link)));
  }

  function step(by) {
    const all = links();
    const at = all.findIndex((link) => link.closest("tr").getAttribute("aria-selected") === "true");
    const next = all[at === -1 ? 0 : Math.min(all.length - 1, Math.max(0, at + by))];
    next?.focus();
    next?.click();
  }

  // Where there is no room beside the list, what opens stands above it, and may be out of sight.
  function bringIntoSight({ detail, target }) {
    const isAsked = target.id === "detail" && detail.requestConfig.triggeringEvent?.type === "click";
    if (isAsked && target.getBoundingClientRect().top < 0) target.scrollIntoView({ block: "start" });
  }

  // What an entry asks for by itself comes too late when another one was opened; so does the first of two that were
  // opened one after the other.
  let opened = null;
  function noteOpening({ detail }) {
    if (detail.elt.matches(".row-link")) opened = detail.xhr;
  }
  function refuseTheLate(event) {
    const { target, xhr, requestConfig } = event.detail;
    if (target.id !== "detail") return;
    const isLate = requestConfig.elt.matches(".row-link") ? xhr !== opened : !requestConfig.elt.isConnected;
    if (isLate) event.preventDefault();
  }

  document.body.addEventListener("htmx:beforeRequest", noteOpening);
  document.body.addEventListener("htmx:beforeSwap", refuseTheLate);
  document.body.addEventListener("htmx:pushedIntoHistory", mark);
  document.body.addEventListener("htmx:afterSettle", bringIntoSight);
  document.body.addEventListener("htmx:afterSwap", mark);
  bindKeys({ j: () => step(1), k: () => step(-1), "/": () => document.querySelector("[data-search]")?.focus() });
  document.querySelector("[data-filter-rows]")?.addEventListener("input", ({ target }) => showOnly(target.value));
  if (links().some(isOpen)) mark();
  bringToMiddle(links().find(isOpen));
}

// Rows that have every word that is typed.
function showOnly(text) {
  const words = text.toLowerCase().split(/\s+/);
  for (const row of document.querySelectorAll("[data-walk] tbody tr")) {
    const said = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => said.includes(word));
  }
}

// The open entry of a list that scrolls by itself.
function bringToMiddle(link) {
  const list = link?.closest(".with-list .card");
  if (list) list.scrollTop += link.getBoundingClientRect().top - list.getBoundingClientRect().top - list.clientHeight / 2;
}
