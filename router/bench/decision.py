"""What one decision costs on one core: hashing a prompt, matching it, deciding, tracking its prefix class, booking.

The index is full, so that every insertion evicts about as many blocks as it adds.
"""

import argparse
from random import Random

from router.bench import dynamo
from router.bench.load import Load
from router.bench.spread import WARM_UP, Figures, timed
from router.core.decide import decide
from router.core.instance import InstanceView
from router.core.policy import Policy
from router.core.prefix import IMPLEMENTATION, PrefixIndex, PromptHasher, prefix_key
from router.core.prefix.chain import DEFAULT_BLOCK_BYTES
from router.core.request import Request
from router.state.hotspots import Hotspots

HELP = "hash, match, decide and book one prompt against a full prefix index"

INSTANCES = (16, 128)
KEY = prefix_key("bench")
_BYTES_PER_TOKEN = 4
_REQUESTS_PER_S = 200
"""Where time matters; the fleet lets it pass once a second."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    load = Load(instances=1)
    parser.add_argument("--instances", type=int, nargs="+", default=INSTANCES, help="sizes of the fleet (16 128)")
    parser.add_argument("--stored-blocks", type=int, default=load.stored_blocks, help="blocks in the index (1000000)")
    parser.add_argument("--prompt-bytes", type=int, default=load.prompt_bytes, help="length of a prompt (32768)")
    parser.add_argument("--repeats", type=int, default=load.repeats, help="timed calls of each kind (2000)")
    parser.add_argument("--no-compare", action="store_true", help="leave ai-dynamo-runtime out where it is installed")


def measure(args: argparse.Namespace) -> dict[str, float | str]:
    """Measure as the command line asks."""
    loads = [
        Load(
            instances=instances,
            stored_blocks=args.stored_blocks,
            prompt_bytes=args.prompt_bytes,
            repeats=args.repeats,
        )
        for instances in args.instances
    ]
    return run(loads, compare=not args.no_compare)


def run(loads: list[Load] | None = None, compare: bool = True) -> dict[str, float | str]:
    """Measure each load in turn; figures end in the number of instances.

    ``compare`` also measures ai-dynamo-runtime where it is installed; ``dynamo_over_pointsman_...`` is how many times
    longer it took.
    """
    figures: dict[str, float | str] = {"prefix_index": IMPLEMENTATION}
    for load in loads or [Load(instances=instances) for instances in INSTANCES]:
        own = measure_own(load)
        if compare and dynamo.AVAILABLE:
            other = dynamo.measure(load)
            own |= {f"dynamo_{name}": figure for name, figure in other.items()}
            own["dynamo_over_pointsman_hash_match_p50"] = other["hash_match_us_p50"] / own["hash_match_us_p50"]
        figures |= {f"{name}_{load.instances}": figure for name, figure in own.items()}
    return figures


def measure_own(load: Load) -> Figures:
    """Measure this program under one load."""
    hasher = PromptHasher(load.seed)
    index = _full_index(load, hasher)
    figures: Figures = {
        "stored_blocks": index.entries,
        "distinct_blocks": index.blocks,
        "memory_mb_per_million_blocks": index.memory_bytes / index.entries,
    }
    return figures | _measure_reading(load, hasher, index) | _measure_insert(load, hasher, index)


def _full_index(load: Load, hasher: PromptHasher) -> PrefixIndex:
    index = PrefixIndex(max_blocks=load.stored_blocks)
    slots = [index.add_instance(max(1, load.stored_blocks // load.instances)) for _ in range(load.instances)]
    for number in range(load.known_prompts):
        chain = hasher.chain(KEY, load.known(number))
        for home in load.homes(number):
            index.insert(slots[home], chain)
    return index


def _measure_reading(load: Load, hasher: PromptHasher, index: PrefixIndex) -> Figures:
    prompts = [load.asked(number)[1] for number in range(load.asked_prompts)]
    chains = [hasher.chain(KEY, prompt) for prompt in prompts]
    matches = [index.match(chain) for chain in chains]
    count = load.asked_prompts
    views = _views(load)
    request = Request("bench", "bench", max(1, load.prompt_bytes // _BYTES_PER_TOKEN))
    policy, rng = Policy(), Random(load.seed)

    def choose(number: int) -> None:
        decide(request, views, index.match(hasher.chain(KEY, prompts[number % count])), policy, rng)

    hotspots = Hotspots(index, DEFAULT_BLOCK_BYTES / _BYTES_PER_TOKEN)
    decisions = [decide(request, views, match, policy, rng) for match in matches]

    def track(number: int) -> None:
        now_s, place = number / _REQUESTS_PER_S, number % count
        if number % _REQUESTS_PER_S == 0:
            hotspots.tick(views, now_s)
        hotspots.note(chains[place], matches[place], decisions[place], None, now_s)

    return {
        **timed("hash", lambda n: hasher.chain(KEY, prompts[n % count]), load.repeats),
        **timed("match", lambda n: index.match(chains[n % count]), load.repeats),
        **timed("hash_match", lambda n: index.match(hasher.chain(KEY, prompts[n % count])), load.repeats),
        **timed("decide", lambda n: decide(request, views, matches[n % count], policy, rng), load.repeats),
        **timed("hash_match_decide", choose, load.repeats),
        **timed("track_class", track, load.repeats),
    }


def _measure_insert(load: Load, hasher: PromptHasher, index: PrefixIndex) -> Figures:
    """Book prompts that are new at an instance that knows their beginning."""
    bookings = []
    for number in range(load.asked_prompts, load.asked_prompts + WARM_UP + load.repeats):
        original, prompt = load.asked(number)
        bookings.append((load.homes(original)[0], hasher.chain(KEY, prompt)))
    return timed("insert", lambda n: index.insert(*bookings[n]), load.repeats)


def _views(load: Load) -> list[InstanceView]:
    rng = Random(load.seed)
    return [
        InstanceView(
            slot=slot,
            name=f"instance-{slot}",
            models=frozenset({"bench"}),
            bs=rng.randrange(64),
            queued_prefill_tokens=rng.randrange(30_000),
            last_chosen=slot,
        )
        for slot in range(load.instances)
    ]
