"""Simulated vLLM servers: the real wire protocol over a continuous-batching model, without a GPU."""

import argparse
import asyncio
import signal
import sys

import msgspec
import uvloop

from router.core.hardware import HardwareProfile
from router.core.hardware_profiles import DEFAULT_PROFILE, HARDWARE_PROFILES
from router.engine.clock import LoopClock
from router.engine.errors import ConfigurationError
from router.engine.fleet import EngineFleet
from router.engine.kv_publisher import EventEndpoints
from router.engine.models import ServedModels
from router.engine.options import EngineOptions

HELP = "run simulated vLLM servers"
DEFAULT_CONTEXT_TOKENS = 131_072


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``pointsman engine``."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, required=True, help="port of the first engine; the others follow")
    parser.add_argument("--count", type=int, default=1, help="engines in this process (default: %(default)s)")
    parser.add_argument("--model", action="append", help="model name, may be repeated or a comma list (default: sim)")
    parser.add_argument("--adapter", action="append", default=[], help="LoRA adapter of the model, may be repeated")
    parser.add_argument("--profile", default=DEFAULT_PROFILE, help="hardware profile (default: %(default)s)")
    parser.add_argument("--kv-tokens", type=int, help="KV cache size in tokens (default: the profile's)")
    parser.add_argument("--block-size", type=int, default=16, help="tokens in a KV block (default: %(default)s)")
    parser.add_argument("--max-model-len", type=int, help="context in tokens (default: 131072, or what fits)")
    parser.add_argument("--speedup", type=float, default=1.0, help="divide every duration by this (default: 1)")
    parser.add_argument("--ranks", type=int, default=1, help="data-parallel ranks of each engine (default: 1)")
    parser.add_argument("--api-key", help="require this key on /v1")
    parser.add_argument("--max-queued", type=int, help="refuse with 503 when this many requests wait")
    parser.add_argument(
        "--kv-events-port",
        type=int,
        help="publish KV events: the first engine's ranks from this port on, then its replay sockets, and so on",
    )
    parser.add_argument("--sse-keep-alive", type=float, help="seconds without a chunk before a stream gets a comment")
    parser.add_argument("--start-delay", type=float, default=0.0, help="seconds of 503 before the engine is ready")
    parser.add_argument(
        "--shutdown-timeout", type=float, default=0.0, help="seconds that running requests may go on after SIGTERM"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT."""
    try:
        options = [_options(args, number) for number in range(args.count)]
    except ConfigurationError as error:
        print(f"pointsman engine: {error}", file=sys.stderr)
        return 2
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(args, options))


async def _serve(args: argparse.Namespace, options: list[EngineOptions]) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    fleet = EngineFleet(options, LoopClock())
    try:
        await fleet.start(args.host, args.port)
    except OSError as error:
        print(f"pointsman engine: {error}", file=sys.stderr)
        return 1
    ports = ", ".join(str(instance.port) for instance in fleet.instances)
    print(f"simulated engines on {args.host}, port {ports}", file=sys.stderr, flush=True)
    await stop.wait()
    await fleet.stop()
    return 0


def _options(args: argparse.Namespace, number: int) -> EngineOptions:
    profile = _profile(args)
    names = [name.strip() for value in args.model or ["sim"] for name in value.split(",") if name.strip()]
    context = args.max_model_len or min(DEFAULT_CONTEXT_TOKENS, profile.kv_capacity_tokens)
    return EngineOptions(
        profile=profile,
        models=ServedModels(tuple(names), tuple(args.adapter), context),
        block_tokens=args.block_size,
        speedup=args.speedup,
        keep_alive_s=args.sse_keep_alive,
        ranks=args.ranks,
        api_key=args.api_key,
        max_queued=args.max_queued,
        start_delay_s=args.start_delay,
        shutdown_timeout_s=args.shutdown_timeout,
        events=_endpoints(args, number, names[0]),
    )


def _profile(args: argparse.Namespace) -> HardwareProfile:
    profile = HARDWARE_PROFILES.get(args.profile)
    if profile is None:
        raise ConfigurationError(
            f"no hardware profile {args.profile!r}; there are {', '.join(sorted(HARDWARE_PROFILES))}"
        )
    if args.kv_tokens is None:
        return profile
    return msgspec.structs.replace(profile, kv_capacity_tokens=args.kv_tokens)


def _endpoints(args: argparse.Namespace, number: int, model: str) -> EventEndpoints | None:
    if args.kv_events_port is None:
        return None
    first = args.kv_events_port + 2 * args.ranks * number
    topic = f"kv@{args.host}:{args.port + number}@{model}"
    return EventEndpoints(f"tcp://{args.host}:{first}", f"tcp://{args.host}:{first + args.ranks}", topic)
