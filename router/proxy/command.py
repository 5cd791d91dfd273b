"""Run a router worker: the data plane, OpenAI's API in and engines out."""

import argparse
import asyncio
import gc
import logging
import socket
import sys
from importlib.util import find_spec
from pathlib import Path

import structlog

from router.proxy.address import parse_address
from router.proxy.limits import Limits
from router.proxy.plane import DEFAULT_PREFIX_BLOCKS
from router.proxy.process import allow_open_files
from router.proxy.worker import DEFAULT_RECORDED, WorkerSettings, run_worker

HELP = "run a router worker (the data plane)"
_GC_THRESHOLDS = (50_000, 20, 50)
"""Requests make few reference cycles; collecting as often as by default costs every stream."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the worker's options."""
    limits = Limits()
    parser.add_argument("--listen", default="127.0.0.1:8080", metavar="HOST:PORT", help="address to serve")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--control", metavar="URL", help="control plane to take the configuration from")
    source.add_argument("--config", type=Path, metavar="FILE", help="configuration document to run from alone")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="file that holds the control plane's token")
    parser.add_argument("--state-dir", type=Path, metavar="DIR", help="where the last good configuration is kept")
    parser.add_argument("--name", help="name of this worker, of no other (default: the host's name and the port)")
    parser.add_argument("--prefix-blocks", type=int, default=DEFAULT_PREFIX_BLOCKS, help="size of the prefix index")
    parser.add_argument("--poll", type=float, default=1.0, metavar="S", help="seconds between load polls")
    parser.add_argument("--reuse-port", action="store_true", help="share the port with other workers")
    parser.add_argument("--first-byte-limit", type=float, default=limits.first_byte_s, metavar="S")
    parser.add_argument("--between-bytes-limit", type=float, default=limits.between_bytes_s, metavar="S")
    parser.add_argument("--drain-limit", type=float, default=limits.drain_s, metavar="S")
    parser.add_argument("--traces", action="store_true", help="send OpenTelemetry traces (needs the extra otel)")
    record = parser.add_mutually_exclusive_group()
    record.add_argument("--record", type=Path, metavar="FILE", help="record served requests there, never their text")
    record.add_argument("--record-last", type=Path, metavar="DIR", help="record there for ever; the last minutes stay")
    parser.add_argument("--record-requests", type=int, default=DEFAULT_RECORDED, help="most requests to record")
    parser.add_argument("--max-body-mb", type=int, default=limits.max_body_bytes >> 20, metavar="MB")


def run(args: argparse.Namespace) -> int:
    """Serve until a signal; 0 after a clean stop, 1 when the address is taken, 2 for unusable arguments."""
    _configure_logging()
    try:
        settings = _settings(args)
    except (ValueError, OSError) as error:
        print(f"pointsman worker: {error}", file=sys.stderr)
        return 2
    allow_open_files()
    gc.collect()
    gc.freeze()  # what was imported stays: it need not be looked through again
    gc.set_threshold(*_GC_THRESHOLDS)
    try:
        with asyncio.Runner(loop_factory=_loop_factory) as runner:
            runner.run(run_worker(settings))
    except OSError as error:
        print(f"pointsman worker: cannot listen on {args.listen}: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


def _settings(args: argparse.Namespace) -> WorkerSettings:
    host, _, port = args.listen.rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(f"--listen {args.listen!r} is not HOST:PORT")
    if args.control is not None:
        parse_address(args.control)
    if args.traces and find_spec("opentelemetry.sdk") is None:
        raise ValueError("--traces needs the extra otel: pip install 'pointsman[otel]'")
    token = "" if args.token_file is None else args.token_file.read_text().strip()
    limits = Limits(
        first_byte_s=args.first_byte_limit,
        between_bytes_s=args.between_bytes_limit,
        drain_s=args.drain_limit,
        max_body_bytes=args.max_body_mb << 20,
    )
    return WorkerSettings(
        host=host.strip("[]"),
        port=int(port),
        name=args.name or f"{socket.gethostname()}-{port}",
        control_url=args.control,
        token=token,
        config_file=args.config,
        state_dir=args.state_dir,
        prefix_blocks=args.prefix_blocks,
        poll_s=args.poll,
        reuse_port=args.reuse_port,
        limits=limits,
        traces=args.traces,
        record=args.record,
        record_requests=args.record_requests,
        record_last=args.record_last,
    )


def _loop_factory() -> asyncio.AbstractEventLoop:
    """Return uvloop's loop where there is one (everywhere but on Windows)."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def _configure_logging() -> None:
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
