// What is in the window, or nearly. What is not need not be drawn before it is.
export const NEAR = "160px 0px";
export const INSIDE = "0px";

export class Sight {
  #observer;
  #away = new Set();

  // margin: how near; onEnter(element): it has come into the window; onLeave(element): it has gone.
  constructor(margin, onEnter, onLeave = () => {}) {
    this.#observer = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting } of entries) {
          if (isIntersecting && this.#away.delete(target)) onEnter(target);
          if (isIntersecting || this.#away.has(target)) continue;
          this.#away.add(target);
          onLeave(target);
        }
      },
      { rootMargin: margin },
    );
    // Paper shows all of it.
    window.addEventListener("beforeprint", () => {
      const away = [...this.#away];
      this.#away.clear();
      for (const element of away) onEnter(element);
    });
  }

  watch(element) {
    this.#observer.observe(element);
  }

  forget(element) {
    this.#observer.unobserve(element);
    this.#away.delete(element);
  }

  // True for what was not looked at yet, so that nothing stays blank.
  has(element) {
    return !this.#away.has(element);
  }
}
