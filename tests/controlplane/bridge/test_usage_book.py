"""What tenants used, from snapshots to rows."""

from datetime import UTC, datetime

import msgspec
import pytest

from controlplane.accounts.models import TenantUsage
from controlplane.bridge.usage_book import WRITE_EVERY_S, UsageBook
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
    book = UsageBook(clock)
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
