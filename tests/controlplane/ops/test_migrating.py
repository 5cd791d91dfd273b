"""Several processes that start at the same time, and migrate one after the other."""

import threading
from pathlib import Path

import pytest
from django.db.utils import ConnectionHandler

from controlplane.databases import database_settings
from controlplane.ops import migrating
from tests.patience import PATIENCE_S
from tests.postgres_server import new_database

pytestmark = pytest.mark.django_db(transaction=True)
WAITING = "select count(*) from pg_locks where locktype = 'advisory' and not granted"


def test_one_migrates_while_the_others_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with new_database() as url:
        handler = ConnectionHandler(database_settings(url, tmp_path))
        monkeypatch.setattr(migrating, "connections", handler)
        order: list[str] = []

        def start_as_well() -> None:
            with migrating.only_one_migrates("default"):
                order.append("second")
            handler.close_all()

        with migrating.only_one_migrates("default"):
            other = threading.Thread(target=start_as_well)
            other.start()
            with handler["default"].cursor() as cursor:
                for _ in range(3_000):
                    cursor.execute(WAITING)
                    if cursor.fetchone()[0]:
                        break
                    other.join(0.01)
                else:
                    pytest.fail("the other does not wait")
            order.append("first")
        other.join(PATIENCE_S)
        handler.close_all()
        assert order == ["first", "second"]


def test_sqlite_waits_for_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = ConnectionHandler(database_settings(None, tmp_path))
    monkeypatch.setattr(migrating, "connections", handler)
    with migrating.only_one_migrates("default"), migrating.only_one_migrates("default"):
        pass
