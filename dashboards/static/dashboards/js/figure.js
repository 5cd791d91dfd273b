// Figures that the server made: plain Plotly JSON in which colours are written "token:NAME".
import { whenPlotly } from "./plotly.js";
import { onPaletteChange, readPalette } from "./live/palette.js";

const CONFIG = { displayModeBar: false, responsive: true, doubleClick: false, showTips: false };

// Draws every [data-figure]; its value is the id of the element that holds the JSON.
export function drawFigures(root = document) {
  const stages = [...root.querySelectorAll("[data-figure]")];
  if (stages.length) whenPlotly().then((plotly) => stages.forEach((stage) => draw(stage, plotly)));
}

onPaletteChange(() => drawFigures());

function draw(stage, plotly) {
  const figure = JSON.parse(document.getElementById(stage.dataset.figure).textContent);
  if (figure === null) return;
  if (!stage.matches(".js-plotly-plot")) stage.replaceChildren(); // what it said while there was nothing to draw
  drawFigure(stage, plotly, figure);
}

export function drawFigure(stage, plotly, figure) {
  const palette = readPalette();
  const { data, layout } = colored(figure, palette);
  plotly.react(stage, data, { ...frame(palette), ...layout, xaxis: axis(layout.xaxis, palette), yaxis: axis(layout.yaxis, palette) }, CONFIG);
}

function colored(value, palette) {
  if (Array.isArray(value)) return value.map((one) => colored(one, palette));
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, colored(one, palette)]));
  }
  if (typeof value === "string" && value.startsWith("token:")) return palette[value.slice("token:".length)];
  return value;
}

function frame(palette) {
  return {
    showlegend: false,
    margin: { l: 52, r: 12, t: 12, b: 44 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: palette.font, size: 11, color: palette.muted },
    hoverlabel: { bgcolor: palette.raised, bordercolor: palette.line, font: { color: palette.text, family: palette.font, size: 12 } },
    dragmode: false,
  };
}

function axis(own = {}, palette) {
  const title = own.title ? { ...own.title, font: { size: 11, color: palette.muted } } : undefined;
  return { fixedrange: true, zeroline: false, gridcolor: palette.lineSoft, linecolor: palette.line, tickfont: { color: palette.faint, size: 11 }, ...own, title };
}
