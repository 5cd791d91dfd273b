// A text that is cut for want of room is shown whole where it is pointed at.
const MAY_BE_CUT = ".table td, .table th, .rail-user, .chip-select select, .stat-note, .decision-line";

export function bindCutTexts() {
  document.addEventListener("pointerover", ({ target }) => {
    const holder = target.closest?.(MAY_BE_CUT);
    if (!holder || holder.title || holder.scrollWidth <= holder.clientWidth) return;
    holder.title = holder.textContent.trim().replace(/\s+/g, " ");
  });
}
