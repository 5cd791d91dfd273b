"""How long an instance whose events were wrong is not believed."""

from router.proxy.events.trust import FIRST_DOUBT_S, FORGIVEN_AFTER, LONGEST_DOUBT_S, EventTrust


def wrong(trust: EventTrust, answers: int) -> bool:
    """Let answers differ from what was predicted; tell whether the instance is not to be believed any more."""
    records = [trust.record("e", "m", predicted=320, reported=0, prompt=400, block=16) for _ in range(answers)]
    return records[-1]


def test_few_wrong_answers_are_no_reason_and_many_are() -> None:
    trust = EventTrust()
    assert not wrong(trust, 15)
    assert wrong(trust, 1)
    report = trust.report("e")
    assert report is not None
    assert (report.samples, report.wrong_share, report.p95_error_blocks) == (16, 1.0, 20.0)


def test_each_doubt_is_longer_than_the_last_up_to_a_limit() -> None:
    trust, now_s, lengths = EventTrust(), 0.0, []
    for _ in range(8):
        trust.doubt("e", now_s)
        length_s = next(s for s in range(1, 4000) if not trust.doubted("e", now_s + s))
        lengths.append(length_s)
        now_s += length_s
    assert lengths[:3] == [FIRST_DOUBT_S, 2 * FIRST_DOUBT_S, 4 * FIRST_DOUBT_S]
    assert lengths[-1] == LONGEST_DOUBT_S


def test_an_old_doubt_is_forgiven() -> None:
    trust = EventTrust()
    trust.doubt("e", 0.0)
    later_s = (FORGIVEN_AFTER + 2) * FIRST_DOUBT_S
    trust.doubt("e", later_s)
    assert trust.doubted("e", later_s + FIRST_DOUBT_S - 1)
    assert not trust.doubted("e", later_s + FIRST_DOUBT_S)


def test_who_is_on_probation_is_judged_by_new_answers_only() -> None:
    trust = EventTrust()
    wrong(trust, 16)
    trust.doubt("e", 0.0)
    trust.believe("e")
    assert trust.report("e") is None
    wrong(trust, 3)
    trust.believe("e")
    report = trust.report("e")
    assert report is not None
    assert report.samples == 3


def test_another_engine_begins_without_a_record() -> None:
    trust = EventTrust()
    wrong(trust, 16)
    trust.doubt("e", 0.0)
    trust.forget("e")
    assert (trust.doubted("e", 1.0), trust.report("e")) == (False, None)
