"""Fuzz: ``python -m tests.fuzz [TARGET...] [--seconds S] [--keep]``. Needs the extra ``fuzz`` (atheris).

Each target runs in a process of its own, from its corpus on, guided by what its inputs reach. The first input that
fails ends its target and is added to its corpus, so that the ordinary tests fail until it is dealt with. With
``--keep``, inputs that reached something new are added as well, as far as :data:`KEPT` and :data:`LONGEST` go.
"""

import argparse
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from tests.fuzz.corpus_file import FOLDER, read_corpus, write_corpus

CHILD = "--child"
"""What the process of one target is told apart by; libFuzzer's own options follow."""
KEPT = 60
LONGEST = 512
_INSTRUMENTED = ("router.proxy", "router.kvevents", "router.core.prefix.reference", "tests.fuzz.targets")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--keep", action="store_true", help="add inputs that reached something new to the corpus")
    args = parser.parse_args()
    if find_spec("atheris") is None:
        print("Fuzzing needs the extra fuzz: pip install --editable '.[fuzz]'", file=sys.stderr)
        return 2
    from tests.fuzz.targets import TARGETS

    if unknown := set(args.targets) - set(TARGETS):
        parser.error(f"no such target: {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    failed = [name for name in args.targets or TARGETS if not _fuzz(name, args.seconds, keep=args.keep)]
    if failed:
        print(f"\nFailed: {', '.join(failed)}. The inputs are in {FOLDER}.", file=sys.stderr)
    return 1 if failed else 0


def _fuzz(target: str, seconds: int, *, keep: bool) -> bool:
    """Fuzz one target; False when an input made it fail."""
    print(f"\n== {target}", flush=True)
    known = read_corpus(target)
    with tempfile.TemporaryDirectory() as folder:
        seeds, found = Path(folder, "seeds"), Path(folder, "found")
        for each in (seeds, found):
            each.mkdir()
        for number, data in enumerate(known):
            (seeds / str(number)).write_bytes(data)
        options = [f"-max_total_time={seconds}", "-timeout=20", "-print_final_stats=1", f"-artifact_prefix={folder}/"]
        done = subprocess.run(
            [sys.executable, "-m", "tests.fuzz", CHILD, target, folder, *options, str(found), str(seeds)], check=False
        )
        bad = [path.read_bytes() for path in Path(folder).glob("*-*") if path.is_file()]
        new = sorted((path.read_bytes() for path in found.iterdir()), key=len)
        kept = [data for data in new if len(data) <= LONGEST][: max(0, KEPT - len(known))] if keep else []
    if bad or kept:
        write_corpus(target, [*known, *kept, *bad])
    return done.returncode == 0 and not bad


def _child(target: str, folder: Path, options: list[str]) -> int:
    import atheris

    with atheris.instrument_imports(include=list(_INSTRUMENTED)):
        from tests.fuzz.targets import TARGETS

    def checked(data: bytes) -> None:
        try:
            TARGETS[target](data)
        except Exception:
            (folder / "failed-here").write_bytes(data)  # libFuzzer does so too, unless it is ended first
            raise

    atheris.Setup([sys.argv[0], *options], checked)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(_child(sys.argv[2], Path(sys.argv[3]), sys.argv[4:]) if sys.argv[1:2] == [CHILD] else main())
