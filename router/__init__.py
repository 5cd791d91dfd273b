"""The router: a library (`core`, `state`, `sim`) and a server (`proxy`).

Imports no web framework, task queue or plotting library; the control plane and the dashboards import it, never the
other way round.
"""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("pointsman")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+source"

__all__ = ["__version__"]
