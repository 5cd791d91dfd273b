"""A comparison as one self-contained page: figures, table, provenance, and the script that draws them inside it.

The drawing script is a parameter. :func:`bundled_plotly_js` finds the file that the plotting package ships, without
importing that package.
"""

from html import escape
from importlib.util import find_spec
from pathlib import Path

import msgspec

from router.sim.errors import ScenarioError
from router.sim.report.comparison import Comparison
from router.sim.report.figures import comparison_figures
from router.sim.report.table import COLUMNS, cells, provenance_text

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fbfbfa; --line: #d5d8dc; --dim: #5b6470; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7e9ec; --paper: #14171b; --line: #343a42; --dim: #9aa3ae; } }
body { font: 13px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 24px auto;
  max-width: 1120px; padding: 0 16px; font-variant-numeric: tabular-nums; }
h1 { font-size: 20px; margin: 0 0 16px; } h2 { font-size: 15px; margin: 32px 0 8px; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: right; padding: 4px 8px; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.chart { height: 420px; } .provenance { color: var(--dim); white-space: pre-wrap; }
"""

_DRAW = """
const figures = JSON.parse(document.getElementById("figures").textContent);
const styles = getComputedStyle(document.documentElement);
const ink = styles.getPropertyValue("--ink").trim();
const line = styles.getPropertyValue("--line").trim();
for (const [id, figure] of Object.entries(figures)) {
  const axis = {gridcolor: line, zerolinecolor: line};
  const layout = {margin: {l: 64, r: 16, t: 40, b: 48}, paper_bgcolor: "transparent", plot_bgcolor: "transparent",
    font: {color: ink, size: 12}, hovermode: "closest", ...figure.layout,
    xaxis: {...axis, ...figure.layout.xaxis}, yaxis: {...axis, ...figure.layout.yaxis}};
  Plotly.newPlot(id, figure.data, layout, {responsive: true, displaylogo: false});
}
"""


def comparison_html(comparison: Comparison, plotly_js: str) -> str:
    """Return the page.

    :param plotly_js: the text of ``plotly.min.js`` (or a smaller bundle with scatter, bar and heatmap).
    """
    figures = comparison_figures(comparison)
    ids = {title: f"chart-{position}" for position, title in enumerate(figures)}
    drawn = msgspec.json.encode({ids[title]: figure for title, figure in figures.items()}).decode()
    charts = "".join(
        f'<h2>{escape(title)}</h2><div class="chart" id="{ids[title]}" role="img" aria-label="{escape(title)}"></div>'
        for title in figures
    )
    title = f"Pointsman simulation: {comparison.provenance.trace}"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head><body>'
        f'<h1>{escape(title)}</h1><p class="provenance">{escape(provenance_text(comparison.provenance))}</p>'
        f"{_table(comparison)}{charts}"
        f'<script type="application/json" id="figures">{_in_json_element(drawn)}</script>'
        f"<script>{_in_script_element(plotly_js)}</script>"
        f"<script>{_DRAW}</script></body></html>"
    )


def bundled_plotly_js() -> str:
    """Return the drawing script that the installed plotting package ships.

    :raises ScenarioError: when it is not installed.
    """
    spec = find_spec("plotly")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        script = Path(folder) / "package_data" / "plotly.min.js"
        if script.is_file():
            return script.read_text(encoding="utf-8")
    raise ScenarioError("no plotly.min.js is installed; pass one with --plotly-js FILE")


def _in_script_element(script: str) -> str:
    """Keep a string inside a script from ending its element."""
    return script.replace("</script", "<\\/script")


def _in_json_element(text: str) -> str:
    """Keep a JSON text from ending the script element that it stands in."""
    return text.replace("<", "\\u003c")


def _table(comparison: Comparison) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in COLUMNS)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells(run)) + "</tr>" for run in comparison.runs
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
