// Dark, light, or what the system prefers; kept in this browser.
const KEY = "pointsman.theme";
const ORDER = ["system", "dark", "light"];
const root = document.documentElement;

export function currentTheme() {
  return root.dataset.theme ?? "system";
}

export function setTheme(theme) {
  if (theme === "system") {
    delete root.dataset.theme;
  } else {
    root.dataset.theme = theme;
  }
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // The choice then lasts for this page only.
  }
  document.dispatchEvent(new CustomEvent("pointsman:theme", { detail: theme }));
}

export function bindThemeSwitch() {
  for (const button of document.querySelectorAll("[data-theme-switch]")) {
    const show = () => {
      button.textContent = `Theme: ${currentTheme()}`;
    };
    button.addEventListener("click", () => {
      setTheme(ORDER[(ORDER.indexOf(currentTheme()) + 1) % ORDER.length]);
      show();
    });
    show();
  }
}
