"""What tenants used and where shadows diverged, from snapshots to rows."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from asgiref.sync import sync_to_async

from controlplane.accounts.models import TenantUsage
from controlplane.bridge.count_book import WRITE_EVERY_S, move_book, shadow_book, usage_book
from controlplane.policies import selectors as policy_selectors
from controlplane.policies.models import ShadowHour
from controlplane.policies.shadow_report import shadow_reports
from router.snapshot import ShadowMove, Snapshot, TenantSample
from tests.fakes.hand_clock import HandClock
from tests.fakes.snapshots import FakeWorker


def snapshot(requests: int) -> Snapshot:
    sample = TenantSample(
        tenant="acme", workload="chat", requests=requests, refused=1, prompt_tokens=10, output_tokens=5
    )
    return msgspec.structs.replace(FakeWorker(1).step(), tenants=(sample,))


@pytest.mark.django_db(transaction=True)
async def test_counts_are_held_for_a_while_and_then_written_to_their_hour() -> None:
    clock = HandClock()
    book = usage_book(clock)
    await book.add(snapshot(2))
    assert await TenantUsage.objects.acount() == 0
    clock.advance(WRITE_EVERY_S)
    await book.add(snapshot(3))
    row = await TenantUsage.objects.aget()
    assert (row.tenant, row.workload, row.requests, row.refused) == ("acme", "chat", 5, 2)
    assert row.hour == datetime.fromtimestamp(clock.unix_s(), UTC).replace(minute=0, second=0, microsecond=0)
    clock.advance(WRITE_EVERY_S)
    await book.add(FakeWorker(1).step())
    assert (await TenantUsage.objects.aget()).requests == 5


@pytest.mark.django_db(transaction=True)
async def test_shadows_are_counted_by_the_policies_beside_each_other() -> None:
    clock = HandClock()
    book = shadow_book(clock)

    def shadowed(shadow: str | None, differs: int) -> Snapshot:
        made = FakeWorker(1).step()
        workload = msgspec.structs.replace(
            made.workloads[0], shadow_policy=shadow, shadow_decisions=10 if shadow else 0, shadow_differs=differs
        )
        return msgspec.structs.replace(made, workloads=(workload,))

    await book.add(shadowed(None, 0))
    await book.add(shadowed("chat@1", 2))
    await book.add(shadowed("chat@2", 1))
    clock.advance(WRITE_EVERY_S)
    await book.add(shadowed("chat@2", 3))
    found = {row.shadow_policy: (row.decisions, row.differs) async for row in ShadowHour.objects.all()}
    assert found == {"chat@1": (10, 2), "chat@2": (20, 4)}


@pytest.mark.django_db(transaction=True)
async def test_what_a_shadow_would_have_moved_is_reported_with_its_hits_and_products() -> None:
    clock = HandClock()
    books = (shadow_book(clock), move_book(clock))
    workloads = policy_selectors.workloads()
    name = (await workloads.aget()).name

    def shadowed(**counts: Any) -> Snapshot:
        made = FakeWorker(1).step()
        sample = msgspec.structs.replace(
            made.workloads[0],
            name=name,
            policy="default@1",
            shadow_policy="chat@2",
            shadow_decisions=10,
            shadow_differs=4,
            shadow_prompt_tokens=1_000,
            shadow_live_hit_tokens=500,
            shadow_hit_tokens=250,
            shadow_live_product=100,
            shadow_product=300,
            **counts,
        )
        return msgspec.structs.replace(made, workloads=(sample,))

    for moves in ((ShadowMove("a", "b", 3), ShadowMove("b", "a", 1)), (ShadowMove("a", "b", 4),)):
        clock.advance(WRITE_EVERY_S)
        for book in books:
            await book.add(shadowed(shadow_moves=moves))
    now = datetime.fromtimestamp(clock.unix_s(), UTC)
    (report,) = await sync_to_async(shadow_reports)(name, 1, now)
    assert (report.live_policy, report.shadow_policy) == ("default@1", "chat@2")
    assert (report.decisions, report.differs, report.differs_share) == (20, 8, 0.4)
    assert (report.live_hit_ratio, report.shadow_hit_ratio) == (0.5, 0.25)
    assert (report.live_product_mean, report.shadow_product_mean) == (10, 30)
    assert [(move.live, move.shadow, move.decisions) for move in report.moves] == [("a", "b", 7), ("b", "a", 1)]
    assert report.arrivals == (("b", 6), ("a", -6))
    assert await sync_to_async(shadow_reports)(name, 1, now + timedelta(hours=1)) == []
    assert len(await sync_to_async(shadow_reports)(name, 6, now + timedelta(hours=1))) == 1
