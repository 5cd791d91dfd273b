"""Which worker runs which configuration, beside the newest one: "applied" means by every live worker."""

from dataclasses import dataclass

from controlplane.bridge.publisher import newest_number
from controlplane.telemetry.sharing.process import sharing
from controlplane.telemetry.worker_book import WorkerStatus
from controlplane.telemetry.workers import worker_statuses


@dataclass(frozen=True, slots=True)
class Convergence:
    """The newest revision, who is heard, and whether all that live run it."""

    revision: int
    workers: tuple[WorkerStatus, ...]
    whole: bool
    """Whether these are all: False while other web processes are not heard."""

    @property
    def applied(self) -> bool:
        """Whether at least one worker lives, and all that do run the newest revision, as far as all are known."""
        live = [worker for worker in self.workers if worker.live]
        return self.whole and bool(live) and all(worker.config_revision == self.revision for worker in live)


def convergence() -> Convergence:
    """Return the present state of the configuration flow."""
    return Convergence(newest_number(), worker_statuses(), sharing().whole)
