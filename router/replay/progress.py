"""A progress bar on the terminal, fed from the tally four times a second; nothing where there is no terminal."""

import asyncio
from contextlib import suppress

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from router.replay.tally import Tally

REFRESH_S = 0.25


async def show_progress(tally: Tally, total: int | None, console: Console) -> None:
    """Draw until cancelled."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[state]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress, suppress(asyncio.CancelledError):
        task = progress.add_task("replay", total=total, state="")
        while True:
            progress.update(task, completed=tally.done + tally.failed, state=_state(tally))
            await asyncio.sleep(REFRESH_S)


def _state(tally: Tally) -> str:
    recent = tally.ttft_s[-200:]
    ttft = f"TTFT {1000 * sum(recent) / len(recent):.0f} ms" if recent else "TTFT -"
    hit = f"hit {tally.cached_tokens / tally.prompt_tokens:.0%}" if tally.prompt_tokens else "hit -"
    return f"{tally.in_flight} in flight, {tally.failed} errors, {ttft}, {hit}"
