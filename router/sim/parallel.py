"""Doing independent pieces of work in processes of their own, with progress.

Processes are spawned, not forked, so that this works beside threads and on every platform; what all pieces share is
handed to each process once.
"""

import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import connection
from typing import Any, Generic, TypeVar

import msgspec

POLL_S = 0.2
PERMILLE = 1000

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Result = TypeVar("Result")

Note = Callable[[int], None]
"""Takes the permille of a piece that is done."""
OnProgress = Callable[[Sequence[int]], None]
"""Gets, for each piece, the permille that is done."""


class Work(msgspec.Struct, Generic[Shared, Item, Result], frozen=True):
    """``function(shared, item, note)`` for each item; the function must be importable by name."""

    function: Callable[[Shared, Item, Note], Result]
    shared: Shared
    items: Sequence[Item]


def do_all(
    work: Work[Shared, Item, Result], *, processes: int | None = None, on_progress: OnProgress | None = None
) -> list[Result]:
    """Do every piece, in parallel where there is more than one of both; results in the order of the items.

    :raises Exception: the first one that a piece raised; the others are abandoned then.
    """
    workers = min(len(work.items), processes or os.cpu_count() or 1)
    if workers <= 1:
        return _do_here(work, on_progress)
    context = multiprocessing.get_context("spawn")
    done = context.Array("q", len(work.items), lock=False)
    with ProcessPoolExecutor(workers, context, _adopt, (work.function, work.shared, done)) as pool:
        futures: list[Future[Result]] = [pool.submit(_do_adopted, place, item) for place, item in enumerate(work.items)]
        try:
            _watch(futures, done, on_progress)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
        return [future.result() for future in futures]


def _do_here(work: Work[Shared, Item, Result], on_progress: OnProgress | None) -> list[Result]:
    done = [0] * len(work.items)

    def noting(place: int) -> Note:
        def note(permille: int) -> None:
            done[place] = permille
            if on_progress is not None:
                on_progress(done)

        return note

    return [work.function(work.shared, item, noting(place)) for place, item in enumerate(work.items)]


def _watch(futures: Sequence[Future[Any]], done: Sequence[int], on_progress: OnProgress | None) -> None:
    pending = set(futures)
    while pending:
        ended, pending = wait(pending, timeout=POLL_S, return_when=FIRST_COMPLETED)
        for future in ended:
            future.result()
        if on_progress is not None:
            on_progress(done)


_adopted: dict[str, Any] = {}
"""What a worker process does; filled once when it starts."""


def _adopt(function: object, shared: object, done: object) -> None:
    _adopted.update(function=function, shared=shared, done=done)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when the one that asked for its work is gone, however that was ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _do_adopted(place: int, item: Any) -> Any:
    done = _adopted["done"]

    def note(permille: int) -> None:
        done[place] = permille

    return _adopted["function"](_adopted["shared"], item, note)
