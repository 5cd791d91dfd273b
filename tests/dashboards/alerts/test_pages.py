"""The pages of alerts, silences and channels, as the server renders them."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.html import escape

from controlplane.accounts.access import Role
from controlplane.accounts.models import User
from controlplane.alerts.finding import Severity
from controlplane.alerts.kinds import KINDS
from controlplane.alerts.lifecycle import AlertState
from controlplane.alerts.models import Alert, Channel, Delivery, Silence
from controlplane.alerts.services import handling
from tests.dashboards.alerts.conftest import fire

pytestmark = pytest.mark.django_db(transaction=True)
LISTS = ["/alerts/", "/alerts/silences/", "/alerts/channels/"]


def text_of(client: Client, path: str, status: int = 200) -> str:
    """Fetch a page."""
    answer = client.get(path)
    assert answer.status_code == status, path
    return answer.content.decode()


@pytest.mark.parametrize("path", [*LISTS, "/alerts/+rows/", "/alerts/+frame/"])
def test_strangers_are_sent_to_sign_in(path: str, transactional_db: None) -> None:
    answer = Client().get(path)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/login/")


@pytest.mark.parametrize("path", LISTS)
def test_nothing_is_inline(signed_in: Client, path: str) -> None:
    text = text_of(signed_in, path)
    assert "style=" not in text
    assert " onclick=" not in text
    assert all('src="' in tag for tag in text.split("<script")[1:])


def test_an_empty_list_teaches_every_kind(signed_in: Client) -> None:
    text = text_of(signed_in, "/alerts/")
    assert "Nothing is wrong" in text
    assert all(kind.title in text for kind in KINDS.values())


def test_the_list_shows_what_is_open_unless_asked_otherwise(signed_in: Client) -> None:
    fire("gpu-01")
    over = fire("gpu-02")
    from controlplane.accounts.actor import SYSTEM

    handling.resolve(actor=SYSTEM, alert_id=over.pk)
    assert "gpu-01" in text_of(signed_in, "/alerts/")
    assert "gpu-02" not in text_of(signed_in, "/alerts/")
    assert "gpu-02" in text_of(signed_in, "/alerts/?state=resolved")
    assert "No alert matches" in text_of(signed_in, "/alerts/?severity=critical")


def test_names_cannot_break_out(signed_in: Client) -> None:
    alert = fire(summary="<script>alert(1)</script>")
    for path in ("/alerts/", f"/alerts/{alert.pk}/"):
        assert "<script>alert(1)" not in text_of(signed_in, path)


def test_an_alert_says_what_it_means_and_what_to_do(signed_in: Client) -> None:
    alert = fire()
    text = text_of(signed_in, f"/alerts/{alert.pk}/")
    assert escape(KINDS["stale_metrics"].what_to_do[0]) in text
    assert "report age s" in text
    assert "/?instance=gpu-01" in text
    assert "<!doctype" not in signed_in.get(f"/alerts/{alert.pk}/", headers={"HX-Request": "true"}).content.decode()


def test_a_form_does_what_it_says(signed_in: Client) -> None:
    alert = fire()
    one = f"/alerts/{alert.pk}/"
    signed_in.post(f"{one}acknowledge/", {"duration": "3600"})
    alert.refresh_from_db()
    assert (alert.life, alert.acknowledged_by) == (AlertState.ACKNOWLEDGED, "ada")
    assert alert.acknowledged_until is not None
    signed_in.post(f"{one}assign/", {"assignee": "ada"})
    signed_in.post(f"{one}comment/", {"comment": "fans are <being> changed"})
    signed_in.post(f"{one}resolve/")
    text = text_of(signed_in, one)
    assert "fans are &lt;being&gt; changed" in text
    assert list(alert.timeline.values_list("what", flat=True))[-1] == "resolved"
    assert "not possible while resolved" in signed_in.post(f"{one}acknowledge/", {}, follow=True).content.decode()


def test_many_at_once(signed_in: Client) -> None:
    rows = [fire(f"gpu-{n}") for n in range(3)]
    signed_in.post("/alerts/+bulk/", {"action": "acknowledge", "duration": "", "alert": [str(r.pk) for r in rows]})
    assert Alert.objects.filter(state="acknowledged").count() == 3
    answer = signed_in.post("/alerts/+bulk/", {"action": "resolve"}, follow=True)
    assert "Choose alerts first" in answer.content.decode()


def test_who_may_only_look_sees_that_and_is_refused(signed_in_as: Callable[[Role], Client]) -> None:
    viewer, alert = signed_in_as(Role.VIEWER), fire()
    text = text_of(viewer, f"/alerts/{alert.pk}/")
    assert "may look, but not handle" in text
    assert "Acknowledge" not in text.replace("acknowledged", "")
    for path, data in (
        (f"/alerts/{alert.pk}/resolve/", {}),
        ("/alerts/+bulk/", {"action": "resolve", "alert": [str(alert.pk)]}),
        ("/alerts/silences/", {"matchers": 'kind="x"', "duration": "1800", "comment": "x"}),
        ("/alerts/channels/+new/webhook/", {"name": "x", "url": "http://10.0.0.1/"}),
    ):
        assert viewer.post(path, data).status_code == 403, path
    assert alert.timeline.count() == 1
    assert not Silence.objects.exists()


def test_an_operator_may_handle(signed_in_as: Callable[[Role], Client]) -> None:
    operator, alert = signed_in_as(Role.OPERATOR), fire()
    assert operator.post(f"/alerts/{alert.pk}/acknowledge/", {"duration": ""}).status_code == 302
    alert.refresh_from_db()
    assert alert.life is AlertState.ACKNOWLEDGED


def test_a_silence_is_previewed_made_and_ended(signed_in: Client) -> None:
    alert = fire()
    form = text_of(signed_in, f"/alerts/silences/?alert={alert.pk}")
    assert "kind=&quot;stale_metrics&quot;" in form
    lines = 'kind="stale_metrics"\ninstance=~gpu-.*'
    preview = signed_in.post("/alerts/silences/+preview/", {"matchers": lines}).content.decode()
    assert "1 open alert" in preview
    assert "No open alert" in signed_in.post("/alerts/silences/+preview/", {"matchers": "kind=x"}).content.decode()
    assert "not of the form" in signed_in.post("/alerts/silences/+preview/", {"matchers": "nonsense"}).content.decode()
    signed_in.post("/alerts/silences/", {"matchers": lines, "duration": "1800", "comment": "fans"})
    made = Silence.objects.get()
    assert timedelta(minutes=29) < made.ends_at - timezone.now() < timedelta(minutes=31)
    assert "silenced" in text_of(signed_in, "/alerts/")
    signed_in.post(f"/alerts/silences/{made.pk}/end/")
    assert "Everybody is told of everything" in text_of(signed_in, "/alerts/silences/")


def test_a_silence_that_cannot_be_is_refused_at_its_fields(signed_in: Client) -> None:
    answer = signed_in.post("/alerts/silences/", {"matchers": "kind=~(", "duration": "1800", "comment": ""})
    assert answer.status_code == 400
    assert "cannot be read" in answer.content.decode()
    assert "This field is required" in answer.content.decode()


def test_a_channel_is_made_tested_and_its_secret_stays_one(signed_in: Client) -> None:
    values = {"name": "hook", "url": "http://10.0.0.1/very-secret", "signing_key": "k" * 20, "matchers": ""}
    assert signed_in.post("/alerts/channels/+new/webhook/", values).status_code == 302
    channel = Channel.objects.get()
    one = f"/alerts/channels/{channel.pk}/"
    signed_in.post(f"{one}test/")
    assert Delivery.objects.get().occasion == "test"
    text = text_of(signed_in, one)
    assert "very-secret" not in text
    assert "k" * 20 not in text
    assert "pending" in text
    changed = signed_in.post(
        f"{one}change/", {"name": "hook 2", "url": "", "signing_key": "", "matchers": "severity=x"}
    )
    assert changed.status_code == 302
    channel.refresh_from_db()
    assert (channel.name, channel.target) == ("hook 2", "http://10.0.0.1/…")


@pytest.mark.parametrize(
    ("kind", "values", "fault"),
    [
        ("webhook", {"name": "x", "url": "http://169.254.169.254/"}, "metadata"),
        ("slack", {"name": "x", "channel": "#gpu"}, "token"),
        (
            "email",
            {"name": "x", "to": "a", "sender": "a@b.example", "host": "mail.example", "port": "25", "security": "none"},
            "no e-mail address",
        ),
    ],
)
def test_a_channel_that_cannot_be_is_refused(signed_in: Client, kind: str, values: dict[str, str], fault: str) -> None:
    answer = signed_in.post(f"/alerts/channels/+new/{kind}/", values)
    assert answer.status_code == 400
    assert fault in answer.content.decode()
    assert not Channel.objects.exists()


def test_a_disabled_channel_says_why(signed_in: Client) -> None:
    signed_in.post("/alerts/channels/+new/webhook/", {"name": "hook", "url": "http://10.0.0.1/"})
    channel = Channel.objects.get()
    Channel.objects.update(enabled=False, disabled_reason="The receiver answers 410.", disabled_at=timezone.now())
    assert "The receiver answers 410." in text_of(signed_in, f"/alerts/channels/{channel.pk}/")
    assert "disabled" in signed_in.post(f"/alerts/channels/{channel.pk}/test/", follow=True).content.decode()


def test_a_long_list_costs_no_more_queries(
    signed_in: Client, django_assert_max_num_queries: Callable[..., object]
) -> None:
    for number in range(50):
        fire(f"gpu-{number}", severity=Severity.CRITICAL)
    with django_assert_max_num_queries(9):  # type: ignore[attr-defined]
        text_of(signed_in, "/alerts/")


def test_people_who_may_not_handle_alerts_are_not_offered(signed_in: Client) -> None:
    User.objects.create_user("viewer-vic", Role.VIEWER, None)
    assert "viewer-vic" not in text_of(signed_in, f"/alerts/{fire().pk}/")
