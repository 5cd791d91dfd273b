"""The same promises on PostgreSQL: concurrency, the outbox, the life of alerts."""

import os
import subprocess
import sys
from pathlib import Path

from tests.postgres_server import postgres_url

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
LIMIT_S = 540
FILES = ("test_concurrency.py", "test_outbox.py", "test_raising.py", "test_handling.py")


def test_alerts_keep_their_promises_on_postgresql() -> None:
    url = postgres_url().rpartition("/")[0] + f"/pointsman_alerts_{os.getpid()}"
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(str(HERE / name) for name in FILES)],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": url},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-6000:]
    assert " passed" in run.stdout
