"""`pointsman up`: run everything on this machine; with `--demo` also a simulated fleet and live traffic."""

import argparse
import asyncio
import functools
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections

from controlplane.accounts.actor import SYSTEM
from controlplane.accounts.services.login_links import create_login_link, link_address
from controlplane.accounts.services.users import ensure_admin
from controlplane.ops.demo_policy import ensure_demo_policy
from controlplane.ops.kept_token import kept_token
from controlplane.ops.migrating import only_one_migrates
from controlplane.ops.supervisor.address import Address
from controlplane.ops.supervisor.demo_fleet import register_engines
from controlplane.ops.supervisor.journal import Journal
from controlplane.ops.supervisor.only_one import AlreadyRunning, only_one
from controlplane.ops.supervisor.plan import Demo, Layout, Part, steps
from controlplane.ops.supervisor.ports import free_run, port_fault
from controlplane.ops.supervisor.supervisor import Step, Supervisor

_ENGINE_HOST = "127.0.0.1"
_FIRST_ENGINE_PORT = 8101
_ENGINES = 8


class Command(BaseCommand):
    """Starts and supervises web, router workers, tasks, and the demo."""

    help = "Run everything on this machine: web, router workers, tasks; with --demo a simulated fleet and traffic."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--demo", action="store_true", help="add 8 simulated engines and live traffic")
        parser.add_argument("--web", default="127.0.0.1:8000", metavar="HOST:PORT", help="default: %(default)s")
        parser.add_argument("--router", default="127.0.0.1:8080", metavar="HOST:PORT", help="default: %(default)s")
        parser.add_argument("--workers", type=int, default=1, metavar="N", help="router workers (default: 1)")
        parser.add_argument(
            "--web-processes", type=int, default=1, metavar="N", help="web processes; several need Redis (default: 1)"
        )
        parser.add_argument(
            "--only",
            choices=[part.value for part in Part],
            help="run only this part here, and the others elsewhere: web processes on any number of machines, tasks on"
            " one; routers are run by `pointsman worker`",
        )
        parser.add_argument("--data-dir", metavar="DIR", help="where everything is kept (default: .data)")
        parser.add_argument("--engines", type=int, default=_ENGINES, metavar="N", help="simulated engines of the demo")
        parser.add_argument(
            "--record",
            action=argparse.BooleanOptionalAction,
            help="keep lengths, hashes and times of the last minutes of requests, never their text, to preview policies"
            " on them (default: POINTSMAN_RECORD; with --demo yes)",
        )
        parser.add_argument("--verbose", action="store_true", help="show every line of every process")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until SIGTERM or Ctrl-C."""
        web, router = self._addresses(options)
        try:
            with self._alone(options):
                status = self._run(web, router, options)
        except AlreadyRunning as error:
            raise CommandError(str(error)) from error
        if status:
            raise CommandError("stopped, because a process could not be kept running", returncode=status)

    def _alone(self, options: dict[str, Any]) -> AbstractContextManager[None]:
        """Hold what nobody else may use meanwhile: web processes may share a data directory."""
        only = options["only"]
        return nullcontext() if only == Part.WEB else only_one(settings.DATA_DIR, only or "everything")

    def _addresses(self, options: dict[str, Any]) -> tuple[Address, Address]:
        try:
            web, router = Address.parse(options["web"]), Address.parse(options["router"])
        except ValueError as error:
            raise CommandError(str(error)) from error
        if not 1 <= options["workers"] <= 64 or not 1 <= options["engines"] <= 128:
            raise CommandError("--workers must be from 1 to 64, and --engines from 1 to 128")
        if not 1 <= options["web_processes"] <= 64:
            raise CommandError("--web-processes must be from 1 to 64")
        if (options["web_processes"] > 1 or options["only"]) and not settings.REDIS_URL:
            raise CommandError("several web processes, and --only, need REDIS_URL: through it they hear one another")
        if options["only"] and not settings.DATABASE_URL:
            raise CommandError("--only needs DATABASE_URL: the parts of one installation share a database")
        if options["only"] and options["demo"]:
            raise CommandError("--demo runs everything here, so it cannot be had with --only")
        if web.port == router.port:
            raise CommandError(f"--web and --router cannot share port {web.port}")
        listened = {None: (web, router), Part.WEB.value: (web,), Part.TASKS.value: ()}[options["only"]]
        faults = [fault for address in listened if (fault := port_fault(address))]
        if faults:
            raise CommandError("; ".join(faults) + ". Choose others with --web and --router.")
        return web, router

    def _run(self, web: Address, router: Address, options: dict[str, Any]) -> int:
        os.umask(0o027)
        journal = Journal(settings.DATA_DIR / "logs", sys.stderr, options["verbose"])
        _migrate(journal)
        layout = self._layout(web, router, options)
        welcome = _welcome(layout)
        connections.close_all()  # the children open their own
        plan = [*steps(layout), Step((), functools.partial(_say, journal, welcome))]
        try:
            return asyncio.run(Supervisor(journal).run(plan))
        finally:
            journal.say("stopped")
            journal.close()

    def _layout(self, web: Address, router: Address, options: dict[str, Any]) -> Layout:
        data_dir: Path = settings.DATA_DIR
        token_file = data_dir / "router.token"
        kept_token(token_file, "router workers of this machine", ["router"])
        demo = _demo(web, data_dir, options["engines"]) if options["demo"] else None
        record = settings.RECORD or options["demo"] if options["record"] is None else options["record"]
        return Layout(
            web=web,
            router=router,
            workers=options["workers"],
            data_dir=data_dir,
            token_file=token_file,
            demo=demo,
            record=record,
            web_processes=options["web_processes"],
            only=options["only"] and Part(options["only"]),
        )


def _migrate(journal: Journal) -> None:
    journal.say(f"data is kept in {settings.DATA_DIR}")
    for alias in connections:
        if alias in {"default", settings.TELEMETRY_DATABASE}:
            with only_one_migrates(alias):
                call_command("migrate", database=alias, interactive=False, verbosity=0)


def _login_secret() -> str:
    return create_login_link(actor=SYSTEM, user=ensure_admin(actor=SYSTEM))


def _demo(web: Address, data_dir: Path, engines: int) -> Demo:
    token = kept_token(data_dir / "demo.token", "demo fleet of this machine", ["instances", "read"])
    ensure_demo_policy()
    first = free_run(_ENGINE_HOST, _FIRST_ENGINE_PORT, Demo.PORTS_AN_ENGINE * engines)
    register = functools.partial(register_engines, web.url, token, _ENGINE_HOST, range(first, first + engines))
    return Demo(_ENGINE_HOST, first, engines, register)


def _welcome(layout: Layout) -> str:
    if layout.only is not None:
        return f"pointsman: {layout.only.value} of this installation runs here"
    link = link_address(_login_secret(), layout.web.url)
    return (
        f"\n  Pointsman is running. Stop it with Ctrl-C.\n\n"
        f"  Pages and REST  {layout.web.url}/\n"
        f"  OpenAI API      {layout.router.url}/v1\n"
        f"  Sign in (once)  {link}\n"
    )


async def _say(journal: Journal, text: str) -> None:
    journal.say(text)
