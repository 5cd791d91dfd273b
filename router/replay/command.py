"""Replay a trace, or generated traffic, against a router or an engine, open loop, and report latencies.

Requests are sent when they are due, whatever the answers. With --speedup X time runs X times as fast: give the
simulated engines the same speed-up, and --model-time to read durations as if nothing had been sped up.
Mooncake's arrivals are recorded in batches three seconds apart; they are spread evenly unless --no-spread is given.
Generated traffic meets published means (see the simulator's generators), except "conversations", which is invented
but feeds the engine's own answers back, turn by turn, and "hot-prefix": requests that all begin with the same prompt.
"""

import argparse
import asyncio
import signal
import sys
import time
from pathlib import Path

import orjson
import uvloop
from rich.console import Console

from router.replay.call import BodyWriter, Source
from router.replay.client import HttpClient, Target
from router.replay.conversations import CHATS, ConversationSource
from router.replay.errors import ExchangeError, OptionError, ReplayError
from router.replay.exchange import Exchange
from router.replay.generated import steady_lap
from router.replay.hot_prefix import NAME as HOT_PREFIX
from router.replay.hot_prefix import HotPrefixSource
from router.replay.player import Pace, Player
from router.replay.progress import show_progress
from router.replay.report import Report, as_json, print_table, report_of
from router.replay.tally import Tally
from router.replay.trace_source import Laps, TraceSource
from router.sim.errors import SimError
from router.sim.traces.generator_profiles import GENERATORS
from router.sim.traces.loading import TraceFormat, load_trace
from router.sim.traces.record import Trace
from router.sim.traces.transforms import limited, spread

HELP = "replay recorded or invented traffic, open loop"
DEFAULT_RATE = 8.0
DEFAULT_GENERATED = 1000
_CHATS_ONLY = (CHATS.name, HOT_PREFIX)
LAP_S = 600.0
"""How much calibrated traffic is generated at a time (in its own time)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``pointsman replay``."""
    parser.add_argument("trace", nargs="?", type=Path, help="trace file (JSONL, plain or gzip)")
    parser.add_argument("--target", default="http://127.0.0.1:8080", help="address of the router or engine")
    parser.add_argument("--format", default="auto", choices=["auto", *TraceFormat], help="format of the trace")
    parser.add_argument("--generate", choices=[*GENERATORS, *_CHATS_ONLY], help="generated traffic instead of a trace")
    parser.add_argument("--rate", type=float, default=DEFAULT_RATE, help="generated requests a second (default: 8)")
    parser.add_argument("--seed", type=int, default=0, help="seed of what is generated (default: %(default)s)")
    parser.add_argument("--loop", action="store_true", help="go on for ever, at a rate that varies gently")
    parser.add_argument("--duration", type=float, help="stop sending after so many seconds")
    parser.add_argument("--limit", type=int, help="send only the first so many requests")
    parser.add_argument("--speedup", type=float, default=1.0, help="let time run so many times as fast (default: 1)")
    parser.add_argument("--model-time", action="store_true", help="multiply reported durations by the speed-up")
    parser.add_argument("--concurrency", type=int, help="most requests under way; says how many were late for it")
    parser.add_argument("--max-output", type=int, help="most tokens to generate for a request")
    parser.add_argument("--workload", help="label every request with this workload")
    parser.add_argument("--model", help="model name (default: the first that the target lists)")
    parser.add_argument("--completions", action="store_true", help="send text completions instead of chats")
    parser.add_argument("--no-spread", action="store_true", help="keep the batches of recorded arrivals")
    parser.add_argument("--api-key", help="key to send in the Authorization header")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds that one request may take (default: 600)")
    parser.add_argument("--output", default="table", choices=["table", "json"], help="form of the report")


def run(args: argparse.Namespace) -> int:
    """Replay until the end, the time limit or Ctrl-C; 0 when no request failed."""
    try:
        _check(args)
        laps = _laps(args)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            report = runner.run(_replay(args, laps))
    except (ReplayError, SimError) as error:
        print(f"pointsman replay: {error}", file=sys.stderr)
        return 2
    if args.output == "json":
        sys.stdout.write(orjson.dumps(as_json(report)).decode() + "\n")
    else:
        print_table(report, Console())
    return 0 if not report.errors or report.interrupted else 1


async def _replay(args: argparse.Namespace, laps: Laps | None) -> Report:
    headers = {"authorization": f"Bearer {args.api_key}"} if args.api_key else {}
    client = HttpClient(Target.parse(args.target), headers)
    try:
        model = args.model or await _first_model(client)
        writer = BodyWriter(model, chat=not args.completions, max_output=args.max_output)
        pace = Pace(args.speedup, args.concurrency, args.duration, args.timeout, args.workload, swing=args.loop)
        return await _play(args, _source(args, laps, writer), client, writer.path, pace)
    finally:
        client.close()


async def _play(args: argparse.Namespace, source: Source, client: HttpClient, path: str, pace: Pace) -> Report:
    tally = Tally()
    player = Player(source, client, path, pace, time.monotonic, tally)
    interrupted = asyncio.Event()

    def interrupt() -> None:
        interrupted.set()
        player.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupt)
    console = Console(stderr=True)
    bar = asyncio.create_task(show_progress(tally, source.total, console)) if console.is_terminal else None
    start_s = time.monotonic()
    try:
        await player.play()
    finally:
        if bar is not None:
            bar.cancel()
            await asyncio.gather(bar, return_exceptions=True)
    scale = args.speedup if args.model_time else 1.0
    return report_of(tally, time.monotonic() - start_s, time_scale=scale, interrupted=interrupted.is_set())


async def _first_model(client: HttpClient) -> str:
    exchange = Exchange(time.monotonic, stream=False)
    try:
        await client.get("/v1/models", exchange)
        name = orjson.loads(exchange.body)["data"][0]["id"]
    except ExchangeError as error:
        raise OptionError(f"the target does not list its models ({error.kind}); name one with --model") from error
    except (orjson.JSONDecodeError, LookupError, TypeError) as error:
        raise OptionError("the target lists no model; name one with --model") from error
    return str(name)


def _check(args: argparse.Namespace) -> None:
    if (args.trace is None) == (args.generate is None):
        raise OptionError("give either a trace or --generate")
    if args.generate in _CHATS_ONLY and args.completions:
        raise OptionError(f"{args.generate} are chats: leave out --completions")
    for name in ("speedup", "rate", "duration", "concurrency", "limit", "max_output", "timeout"):
        value = getattr(args, name)
        if value is not None and not value > 0:
            raise OptionError(f"--{name.replace('_', '-')} must be above 0, not {value}")


def _laps(args: argparse.Namespace) -> Laps | None:
    """Return what to play lap by lap; None for what has no laps."""
    if args.trace is not None:
        trace = load_trace(args.trace, None if args.format == "auto" else TraceFormat(args.format))
        played = limited(trace if args.no_spread else spread(trace), args.limit)
        return lambda lap: played
    return None if args.generate in _CHATS_ONLY else (lambda lap: _generated(args, lap))


def _generated(args: argparse.Namespace, lap: int) -> Trace:
    """Generate a lap: ten minutes of traffic, or as much as there will be."""
    rate = args.rate / args.speedup
    requests = args.limit or (None if _endless(args) else DEFAULT_GENERATED)
    duration_s = LAP_S if requests is None else 1.2 * requests / rate
    return limited(steady_lap(args.generate, seed=args.seed + lap, rate=rate, duration_s=duration_s), requests)


def _source(args: argparse.Namespace, laps: Laps | None, writer: BodyWriter) -> Source:
    if laps is not None:
        return TraceSource(laps, writer, loop=args.loop or (args.trace is None and args.duration is not None))
    limit = args.limit or (None if _endless(args) else DEFAULT_GENERATED)
    rate = args.rate / args.speedup
    if args.generate == HOT_PREFIX:
        return HotPrefixSource(writer, rate, args.seed, limit=limit)
    return ConversationSource(CHATS, writer, rate, args.seed, limit=limit)


def _endless(args: argparse.Namespace) -> bool:
    return args.loop or args.duration is not None
