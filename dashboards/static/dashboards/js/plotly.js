// plotly.js is large and loads beside everything else, so that numbers never wait for it.
export function whenPlotly() {
  if (window.Plotly) return Promise.resolve(window.Plotly);
  const script = document.getElementById("plotly-script");
  return new Promise((resolve) => script.addEventListener("load", () => resolve(window.Plotly), { once: true }));
}

