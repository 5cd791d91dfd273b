"""Events are found wherever the network cuts the stream."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from router.replay.sse import EventSplitter

EVENTS = [b'data: {"choices":[]}', b"data: [DONE]", b"data: x\ndata: y"]


@given(st.lists(st.sampled_from([*EVENTS, b": keep-alive"]), max_size=8), st.lists(st.integers(0, 200), max_size=12))
def test_cutting_the_stream_anywhere_gives_the_same_events(events: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(event + b"\n\n" for event in events)
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    splitter = EventSplitter()
    found = [event for start, end in itertools.pairwise(places) for event in splitter.feed(stream[start:end])]
    assert found == [event for event in events if not event.startswith(b":")]
    assert not splitter.pending


def test_an_unfinished_event_is_pending() -> None:
    splitter = EventSplitter()
    assert splitter.feed(b"data: a\n\ndata: b") == [b"data: a"]
    assert splitter.pending
    assert splitter.feed(b"\n\n") == [b"data: b"]
