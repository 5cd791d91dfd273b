"""A router worker: puts the parts together, runs them, and ends them in order."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random, SystemRandom
from typing import TYPE_CHECKING

import msgspec
import structlog

from router.ports import ConfigSource
from router.proxy.address import parse_address
from router.proxy.config_flow import ConfigFlow
from router.proxy.config_source import ControlPlaneSource, FileSource
from router.proxy.events.following import EventFollower
from router.proxy.last_good import LastGood
from router.proxy.limits import Limits
from router.proxy.plane import DEFAULT_PREFIX_BLOCKS, Plane
from router.proxy.poller import LoadPoller
from router.proxy.pool import Pool
from router.proxy.publisher import ControlPlaneSink, Publisher
from router.proxy.server import ProxyServer
from router.proxy.snapshots import WorkerIdentity

if TYPE_CHECKING:
    from router.proxy.tracing import OtelTracer

_log = structlog.get_logger(__name__)

DEFAULT_RECORDED = 100_000
_RECORD_BUFFER = 1 << 20


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker runs; exactly one of ``control_url`` and ``config_file`` is set."""

    host: str = "127.0.0.1"
    port: int = 8080
    name: str = "router-0"
    control_url: str | None = None
    token: str = ""
    config_file: Path | None = None
    state_dir: Path | None = None
    prefix_blocks: int = DEFAULT_PREFIX_BLOCKS
    poll_s: float = 1.0
    reuse_port: bool = False
    limits: Limits = Limits()
    record: Path | None = None
    """File to record served requests to."""
    record_requests: int = DEFAULT_RECORDED
    record_last: Path | None = None
    """Folder to record the last minutes to, for ever; not both."""
    traces: bool = False
    """Send OpenTelemetry traces, as its environment variables say."""


class SystemClock:
    """The machine's clock."""

    def monotonic_s(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()

    def unix_s(self) -> float:
        """Return seconds since the epoch."""
        return time.time()


class Worker:
    """One worker; ``address`` is known once it listens."""

    def __init__(self, settings: WorkerSettings, loop: asyncio.AbstractEventLoop) -> None:
        self._settings = settings
        rng = Random(SystemRandom().getrandbits(128))
        self.plane = Plane(loop, rng, settings.limits, settings.prefix_blocks)
        self.server = ProxyServer(self.plane)
        self.address = ("", 0)
        self._loop = loop
        self._control: Pool | None = None
        self._tracer: OtelTracer | None = None
        self._tasks: list[asyncio.Task[None]] = []
        last_good = None if settings.state_dir is None else LastGood(settings.state_dir)
        self._flow = ConfigFlow(self.plane, self._source(), last_good, rng)
        self._poller = LoadPoller(self.plane, rng, settings.poll_s)
        self._events = EventFollower(self.plane, SystemClock())

    async def start(self) -> None:
        """Listen and begin to follow the configuration.

        :raises OSError: when the address cannot be listened on.
        """
        restored = self._flow.restore()
        settings = self._settings
        if settings.record is not None:
            self._record(settings.record)
        elif settings.record_last is not None:
            self._record_last(settings.record_last)
        if settings.traces:
            self._trace()
        self.address = await self.server.listen(settings.host, settings.port, reuse_port=settings.reuse_port)
        self._run(self._flow.run)
        self._run(self._events.run)
        self._run(self._poller.run)
        if self._control is not None:
            identity = WorkerIdentity(settings.name, time.time())
            sink = ControlPlaneSink(self._control, settings.token)
            self._run(Publisher(self.plane, sink, identity, SystemClock()).run)
        _log.info("listening", host=self.address[0], port=self.address[1], name=settings.name, restored=restored)

    async def stop(self) -> None:
        """Drain, then end every task."""
        _log.info("stopping", in_flight=self.plane.in_flight)
        await self.server.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._control is not None:
            self._control.close()
        if self.plane.recorder is not None:
            self.plane.recorder.close()
        if self._tracer is not None:
            await asyncio.to_thread(self._tracer.close)

    def _trace(self) -> None:
        from router.proxy.tracing import otlp_tracer  # needs the extra "otel"

        self._tracer = otlp_tracer(self._settings.name)
        self.plane.tracer = self._tracer

    def _record(self, file: Path) -> None:
        from router.proxy.recorder import Recorder  # brings numpy, which a worker that records nothing has no use for

        started_s, most = self._loop.time(), self._settings.record_requests
        self.plane.recorder = Recorder(file.open("wb", _RECORD_BUFFER), started_s, time.time(), most)

    def _record_last(self, folder: Path) -> None:
        from router.proxy.rolling_recorder import RollingRecorder

        self.plane.recorder = RollingRecorder(folder, self._settings.name, self._loop.time(), time.time())

    def _source(self) -> ConfigSource:
        settings = self._settings
        if settings.control_url is not None:
            self._control = Pool(parse_address(settings.control_url), settings.limits, self._loop)
            return ControlPlaneSource(self._control, settings.token, settings.name)
        if settings.config_file is not None:
            return FileSource(settings.config_file)
        raise ValueError("a worker needs a control plane or a configuration file")

    def _run(self, work: Callable[[], Awaitable[None]]) -> None:
        self._tasks.append(asyncio.ensure_future(_guarded(work)))


async def _guarded(work: Callable[[], Awaitable[None]]) -> None:
    """Log what ends a background task; the worker routes on without it."""
    try:
        await work()
    except asyncio.CancelledError:
        raise
    except Exception:
        _log.exception("task_failed")


async def run_worker(settings: WorkerSettings) -> None:
    """Run until SIGTERM or SIGINT, then drain.

    :raises OSError: when the address cannot be listened on.
    """
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)
    worker = Worker(settings, loop)
    await worker.start()
    await stop.wait()
    await worker.stop()
