// Applies the chosen theme before the first paint. A classic script on purpose: modules run after parsing.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("pointsman.theme");
  } catch {
    // Storage may be blocked; the system's preference then decides.
  }
  if (theme === "dark" || theme === "light") {
    document.documentElement.dataset.theme = theme;
  }
})();
