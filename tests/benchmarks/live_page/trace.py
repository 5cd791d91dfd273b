"""Main-thread work of a page, from a trace of Chromium."""

import json
from typing import NamedTuple

from playwright.async_api import Browser, Page

CATEGORIES = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"]
_MAIN_THREAD = "CrRendererMain"
_TASK = "ThreadControllerImpl::RunTask"


class Work(NamedTuple):
    """CPU time of the main thread; tasks are what runs without a break, so what a person would feel."""

    total_s: float
    longest_task_s: float
    tasks_over_50_ms: int
    busiest_frame_s: float
    """The most work that began within one quarter of a second: a frame of data and everything it caused."""


async def traced(browser: Browser, page: Page, seconds: float) -> Work:
    """Record a page for a while and add its main thread's work up."""
    await browser.start_tracing(page=page, categories=CATEGORIES)
    await page.wait_for_timeout(seconds * 1000)
    return work_of(json.loads(await browser.stop_tracing())["traceEvents"], page.url)


def work_of(events: list[dict[str, object]], url: str) -> Work:
    """Return the work of the busiest renderer's main thread: the page's own, in a browser with one page."""
    names = {
        (event["pid"], event["tid"])
        for event in events
        if event.get("name") == "thread_name" and event["args"]["name"] == _MAIN_THREAD  # type: ignore[index]
    }
    by_thread: dict[tuple[object, object], list[tuple[float, float]]] = {}
    for event in events:
        thread = (event.get("pid"), event.get("tid"))
        if event.get("ph") == "X" and event.get("name") == _TASK and thread in names:
            cpu_us = float(event.get("tdur", event.get("dur", 0)))  # type: ignore[arg-type]
            by_thread.setdefault(thread, []).append((float(event["ts"]), cpu_us))  # type: ignore[arg-type]
    if not by_thread:
        raise RuntimeError(f"the trace of {url} has no task of a main thread")
    tasks = max(by_thread.values(), key=lambda found: sum(cpu for _, cpu in found))
    frames: dict[int, float] = {}
    for at_us, cpu_us in tasks:
        frames[int(at_us // 250_000)] = frames.get(int(at_us // 250_000), 0.0) + cpu_us
    return Work(
        total_s=sum(cpu for _, cpu in tasks) / 1e6,
        longest_task_s=max(cpu for _, cpu in tasks) / 1e6,
        tasks_over_50_ms=sum(cpu > 50_000 for _, cpu in tasks),
        busiest_frame_s=max(frames.values()) / 1e6,
    )
