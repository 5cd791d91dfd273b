"""Stage 1: which classes to watch. Pure, for routers and for whoever evaluates their reports.

::

    watch      hot in the window       next
    none       yes                     watched, since now
    none       no                      none
    watched    yes                     watched, calm since never
    watched    no                      watched, calm since the first time it was not hot
    watched    no for a whole window   none
"""

import msgspec


class Watch(msgspec.Struct, frozen=True):
    """A class on watch. Times in seconds of the caller's clock."""

    since_s: float
    calm_since_s: float | None = None
    """When it was first not hot, after it last was."""


def is_hot(requests: int, arrivals: int, holders: int, ready: int) -> bool:
    """Say whether ``x / (1 - x) > |M| / (N - |M|)``, that is ``x * N > |M|`` for the share ``x = requests / arrivals``.

    :param holders: |M|, ready instances that hold the prefix. With none there is nobody to relieve; with all of
        them nobody else to take the requests: neither is hot.
    :param ready: N, all ready instances.
    """
    return 0 < holders < ready and requests * ready > holders * arrivals


def next_watch(watch: Watch | None, hot: bool, now_s: float, window_s: float) -> Watch | None:
    """Return the watch after one evaluation of stage 1; None when the class is not, or no longer, watched."""
    if hot:
        return Watch(now_s) if watch is None else Watch(watch.since_s)
    if watch is None:
        return None
    calm_since_s = now_s if watch.calm_since_s is None else watch.calm_since_s
    return None if now_s - calm_since_s >= window_s else Watch(watch.since_s, calm_since_s)
