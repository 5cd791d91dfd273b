"""Scheduled work of preloading. Every task can run twice, or not at all, without harm."""

import time

from celery import shared_task
from django.conf import settings

from controlplane.alerts.evaluating import read_present
from controlplane.fleet.selectors import living
from controlplane.preloading.planning import Target, plan
from controlplane.preloading.selectors import made
from controlplane.preloading.sending import send_due
from controlplane.preloading.services import make_plans
from controlplane.preloading.task_names import SEND
from router.core.preload_budget import PreloadBudget

_ROUNDS = 10


@shared_task(name="preloading.plan", time_limit=60)  # type: ignore[untyped-decorator]
def plan_preloads() -> None:
    """Plan what routers last reported asks for."""
    if settings.PRELOAD:
        targets = [Target(str(row.pk), row.name, row.life, row.epoch) for row in living()]
        budget = PreloadBudget(most_prefixes=settings.PRELOAD_PREFIXES)
        make_plans(wishes=plan(read_present(time.time()), targets, made(), budget))


@shared_task(name=SEND, time_limit=300)  # type: ignore[untyped-decorator]
def send_preloads() -> None:
    """Send the preloads that are due, a few at once, until none is."""
    for _ in range(_ROUNDS):
        if not send_due():
            return
