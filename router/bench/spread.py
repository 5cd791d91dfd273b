"""Timing a call many times over: median and 99th percentile."""

import gc
from collections.abc import Callable
from time import perf_counter_ns

Figures = dict[str, float]
"""Name, with its unit -> figure."""

WARM_UP = 100


def timed(name: str, call: Callable[[int], object], repeats: int) -> Figures:
    """Time ``call(0)``, ``call(1)``, ... one by one; the first ``WARM_UP`` calls are left out.

    Returns ``{name}_us_p50`` and ``{name}_us_p99``, in microseconds. The collector is off meanwhile, so that no call
    pays for the garbage of others.
    """
    for number in range(WARM_UP):
        call(number)
    times_ns = []
    gc.collect()
    gc.disable()
    try:
        for number in range(WARM_UP, WARM_UP + repeats):
            begin_ns = perf_counter_ns()
            call(number)
            times_ns.append(perf_counter_ns() - begin_ns)
    finally:
        gc.enable()
    times_ns.sort()
    return {f"{name}_us_p50": times_ns[repeats // 2] / 1e3, f"{name}_us_p99": times_ns[repeats * 99 // 100] / 1e3}
