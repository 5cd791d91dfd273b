"""Several processes share the filesystem broker; nobody ever reads half a file."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from kombu import Connection, Exchange, Queue

from controlplane import filesystem_broker


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    filesystem_broker.register()
    options = {
        "data_folder_in": str(tmp_path),
        "data_folder_out": str(tmp_path),
        "control_folder": str(tmp_path / "control"),
    }
    with Connection(f"{filesystem_broker.SCHEME}://localhost/", transport_options=options) as made:
        yield made


def test_messages_written_while_others_read_all_arrive_whole(connection: Connection) -> None:
    count = 300
    finished = Event()

    def write() -> None:
        with connection.clone() as own, own.SimpleQueue("work") as queue:
            for number in range(count):
                queue.put({"number": number, "filler": "x" * 5_000})
        finished.set()

    def read() -> list[int]:
        numbers = []
        with connection.clone() as own, own.SimpleQueue("work") as queue:
            while True:
                last_look = finished.is_set()
                try:
                    message = queue.get(block=False)
                except queue.Empty:
                    if last_look:
                        return numbers
                else:
                    numbers.append(message.payload["number"])
                    message.ack()

    # Bindings are remembered per process, not per connection: bind before any thread relies on it.
    connection.SimpleQueue("work").close()
    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        pool.submit(write).result()
        received = [number for reader in readers for number in reader.result()]
    assert sorted(received) == list(range(count))


def test_queues_bound_at_the_same_time_are_all_in_the_table(connection: Connection) -> None:
    exchange = Exchange("celery", type="direct")

    def bind(number: int) -> None:
        with connection.clone() as own:
            channel = own.channel()
            Queue(f"queue-{number}", exchange, routing_key=f"key-{number}").bind(channel).declare()
            assert channel.get_table("celery")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(bind, range(40)))
    table = connection.channel().get_table("celery")
    assert {entry.queue for entry in table} == {f"queue-{number}" for number in range(40)}
