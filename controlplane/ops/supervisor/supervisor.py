"""Starting children in order, keeping them alive, and ending them all.

Every child has one task that runs it again and again. The first that must be given up, or a signal, ends everything.
"""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from controlplane.ops.supervisor.child import Child, ChildSpec
from controlplane.ops.supervisor.journal import Journal
from controlplane.ops.supervisor.restarts import RestartPolicy, Restarts

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class GivenUp(Exception):
    """A child keeps dying or does not get ready; the message says what it wrote last."""


@dataclass(frozen=True, slots=True)
class Step:
    """Children to start together; ``then`` runs once all of them are ready."""

    children: tuple[ChildSpec, ...]
    then: Callable[[], Awaitable[None]] | None = None


class Supervisor:
    """Runs steps, one after the other, until a signal or a failure."""

    def __init__(self, journal: Journal, restarts: RestartPolicy | None = None) -> None:
        self._journal = journal
        self._policy = restarts or RestartPolicy()
        self._children: dict[str, Child] = {}
        self._keepers: list[asyncio.Task[None]] = []
        self._stop = asyncio.Event()
        self._signals = 0
        self.running = asyncio.Event()
        """Set once every step is done."""

    async def run(self, steps: Sequence[Step]) -> int:
        """Run until told to stop; return 0, or 1 when a child had to be given up."""
        self._listen()
        work = asyncio.create_task(self._run(steps), name="steps")
        stopped = asyncio.create_task(self._stop.wait(), name="stop")
        try:
            await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
            return 0
        except GivenUp as reason:
            self._journal.say(f"pointsman: {reason}")
            return 1
        finally:
            stopped.cancel()
            await self._end(work)

    def stop(self) -> None:
        """End everything; said twice, at once."""
        self._signals += 1
        self._stop.set()
        if self._signals > 1:
            for child in self._children.values():
                child.hurry()

    def pids(self) -> dict[str, int]:
        """Return the process id of every child that was started."""
        return {name: child.pid for name, child in self._children.items()}

    async def _run(self, steps: Sequence[Step]) -> None:
        for step in steps:
            ready = [self._keep_alive(spec) for spec in step.children]
            await self._all_or_failure(asyncio.gather(*ready))
            if step.then is not None:
                await self._all_or_failure(step.then())
        self.running.set()
        await self._all_or_failure(asyncio.Event().wait())

    async def _all_or_failure(self, wanted: Awaitable[object]) -> None:
        """Wait for something, but no longer than until a child is given up."""
        task = asyncio.ensure_future(wanted)
        try:
            await asyncio.wait({task, *self._keepers}, return_when=asyncio.FIRST_COMPLETED)
            for keeper in self._keepers:
                if keeper.done():
                    keeper.result()
            await task
        finally:
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    def _keep_alive(self, spec: ChildSpec) -> Awaitable[object]:
        ready = asyncio.Event()
        self._keepers.append(asyncio.create_task(self._keep(spec, ready), name=f"keeper of {spec.name}"))
        return ready.wait()

    async def _keep(self, spec: ChildSpec, ready: asyncio.Event) -> None:
        restarts = Restarts(self._policy)
        loop = asyncio.get_running_loop()
        while True:
            began_s = loop.time()
            child = self._children[spec.name] = Child(spec, self._journal.line)
            await child.start()
            how = await self._run_once(child, ready, loop.time)
            delay_s = restarts.next_delay_s(loop.time() - began_s)
            if delay_s is None:
                raise GivenUp(self._obituary(child, f"{how}, {restarts.deaths} times in a row"))
            self._journal.say(f"{spec.name} {how}; starting it again in {delay_s:g} s")
            await asyncio.sleep(delay_s)

    async def _run_once(self, child: Child, ready: asyncio.Event, now_s: Callable[[], float]) -> str:
        """Run a child until it ends; return how it ended."""
        began_s = now_s()
        ended = asyncio.ensure_future(child.wait())
        getting_ready = asyncio.ensure_future(child.readiness.wait())
        try:
            await asyncio.wait(
                {ended, getting_ready}, timeout=child.spec.ready_within_s, return_when=asyncio.FIRST_COMPLETED
            )
            if getting_ready.done() and not ended.done():
                getting_ready.result()
                self._journal.say(f"{child.spec.name} is ready after {now_s() - began_s:.1f} s")
                ready.set()
            elif not ended.done():
                await child.kill()
                return f"was not ready within {child.spec.ready_within_s:g} s"
            return _how(await ended)
        finally:
            for task in (ended, getting_ready):
                task.cancel()
            await asyncio.gather(ended, getting_ready, return_exceptions=True)

    def _obituary(self, child: Child, how: str) -> str:
        lines = "\n".join(f"    {line}" for line in child.last_lines) or "    (nothing)"
        return (
            f"{child.spec.name} {how}. It wrote last:\n{lines}\nAll of it is in {self._journal.path(child.spec.name)}"
        )

    async def _end(self, work: "asyncio.Task[None]") -> None:
        for task in (work, *self._keepers):
            task.cancel()
        await asyncio.gather(work, *self._keepers, return_exceptions=True)
        for child in reversed(self._children.values()):
            await child.stop()

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self.stop)


def _how(status: int) -> str:
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"ended with status {status}"
