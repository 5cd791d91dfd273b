"""Main-thread work of a page, from a trace of Chromium.

Work is CPU time of the thread (``tdur``), so what other processes do meanwhile does not count, though it still slows a
shared core down: a fixed piece of work, done in the page before and after, says how fast the core was.
"""

import json
from bisect import bisect
from collections.abc import Sequence
from typing import Any, NamedTuple

from playwright.async_api import Browser, Page

CATEGORIES = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"]
_MAIN_THREAD = "CrRendererMain"
_WORKER_THREAD = "DedicatedWorker thread"
_TASK = "ThreadControllerImpl::RunTask"
_ARRIVAL = "WebSocketReceive"
_YARDSTICK = """() => {
  const times = Array.from({ length: 15 }, () => {
    const beganMs = performance.now();
    let sum = 0;
    for (let at = 0; at < 4e5; at += 1) sum = (sum + Math.sqrt(at) * 31) % 1e6;
    return sum < 0 ? 0 : performance.now() - beganMs;
  });
  return times.sort((one, other) => one - other)[7];
}"""

Event = dict[str, Any]
_Thread = tuple[int, int]


class Work(NamedTuple):
    """CPU time of a page's threads; a frame is everything from one frame of data to the next."""

    frames: int
    frame_mean_s: float
    frame_p95_s: float
    frame_busiest_s: float
    task_longest_s: float
    """Tasks are what runs without a break, so what a person would feel."""
    tasks_over_50_ms: int
    worker_frame_mean_s: float
    """Of the thread that paints the canvases."""
    yardstick_s: float
    """What a fixed piece of work took in the page meanwhile: figures of different hours compare by it."""


async def traced(browser: Browser, page: Page, seconds: float) -> Work:
    """Record a page for a while and add its work up."""
    before_ms = await page.evaluate(_YARDSTICK)
    await browser.start_tracing(page=page, categories=CATEGORIES)
    await page.wait_for_timeout(seconds * 1000)
    events = json.loads(await browser.stop_tracing())["traceEvents"]
    after_ms = await page.evaluate(_YARDSTICK)
    return work_of(events, yardstick_s=(before_ms + after_ms) / 2e3)


def work_of(events: Sequence[Event], yardstick_s: float) -> Work:
    """Return the work of the renderer that was busiest: the page's own, in a browser with one page.

    :raises RuntimeError: for a trace without frames of data or without tasks.
    """
    arrivals = sorted(event["ts"] for event in events if event.get("name") == _ARRIVAL)
    main = _busiest(_tasks(events, _MAIN_THREAD))
    if len(arrivals) < 3 or not main:
        raise RuntimeError(f"the trace has {len(arrivals)} frames of data and {len(main)} tasks of a main thread")
    frames = _by_frame(main, arrivals)
    worker = _busiest(_tasks(events, _WORKER_THREAD))
    return Work(
        frames=len(frames),
        frame_mean_s=sum(frames) / len(frames),
        frame_p95_s=sorted(frames)[int(len(frames) * 0.95)],
        frame_busiest_s=max(frames),
        task_longest_s=max(cpu for _, cpu in main),
        tasks_over_50_ms=sum(cpu > 0.05 for _, cpu in main),
        worker_frame_mean_s=sum(_by_frame(worker, arrivals)) / len(frames),
        yardstick_s=yardstick_s,
    )


def _tasks(events: Sequence[Event], thread_name: str) -> dict[_Thread, list[tuple[float, float]]]:
    """Return (end in microseconds, CPU seconds) of all tasks, by thread of that name."""
    named = {
        (e["pid"], e["tid"]) for e in events if e.get("name") == "thread_name" and e["args"]["name"] == thread_name
    }
    found: dict[_Thread, list[tuple[float, float]]] = {}
    for event in events:
        thread = (event.get("pid", 0), event.get("tid", 0))
        if event.get("ph") == "X" and event.get("name") == _TASK and thread in named:
            found.setdefault(thread, []).append((event["ts"] + event.get("dur", 0), event.get("tdur", 0) / 1e6))
    return found


def _busiest(threads: dict[_Thread, list[tuple[float, float]]]) -> list[tuple[float, float]]:
    return max(threads.values(), key=lambda tasks: sum(cpu for _, cpu in tasks), default=[])


def _by_frame(tasks: Sequence[tuple[float, float]], arrivals: Sequence[float]) -> list[float]:
    """Return the work between each two arrivals: that of the task which an arrival is part of counts to its frame."""
    sums = [0.0] * (len(arrivals) + 1)
    for end_us, cpu_s in tasks:
        sums[bisect(arrivals, end_us)] += cpu_s
    return sums[1:-1]
