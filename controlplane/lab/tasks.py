"""Scheduled and rung-for work of the laboratory. Every task can run twice, or not at all, without harm."""

import logging

from celery import shared_task

from controlplane.fleet import doorbell
from controlplane.lab.execution import execute
from controlplane.lab.limits import limits
from controlplane.lab.selectors import is_queued
from controlplane.lab.services.claims import claim_next, fail, recover_lost
from controlplane.lab.services.keeping import clear_files, forget_old
from controlplane.lab.stopping import STOPPING
from controlplane.lab.task_names import WORK

logger = logging.getLogger(__name__)


@shared_task(name=WORK, time_limit=86_400)  # type: ignore[untyped-decorator]
def work() -> None:
    """Run the next queued simulation, if one may run, and ring for the one after it."""
    if STOPPING.is_set():
        return
    simulation = claim_next(limits().concurrent)
    if simulation is None:
        return
    try:
        execute(simulation)
    except Exception:
        logger.exception("simulation %s failed", simulation.pk)
        fail(simulation, "Something went wrong in the task worker; its log says what.")
    if is_queued():
        doorbell.ring(WORK)


@shared_task(name="lab.sweep", time_limit=60)  # type: ignore[untyped-decorator]
def sweep() -> None:
    """Recover what died with its worker, forget what is old, and ring where somebody waits."""
    for simulation in recover_lost():
        logger.warning("simulation %s was lost with its worker: now %s", simulation.pk, simulation.state)
    forget_old()
    clear_files()
    if is_queued():
        doorbell.ring(WORK)
