"""Whether this task worker is being stopped: a simulation that it runs is given back, so that nobody waits for it."""

from threading import Event

from celery.signals import worker_shutting_down

STOPPING = Event()


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _stop(**_: object) -> None:
    STOPPING.set()
