"""What tenants used and where shadows diverged, from snapshots to rows."""

from datetime import UTC, datetime

import msgspec
import pytest

from controlplane.accounts.models import TenantUsage
from controlplane.bridge.count_book import WRITE_EVERY_S, shadow_book, usage_book
from controlplane.policies.models import ShadowHour
from router.snapshot import Snapshot, TenantSample
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
