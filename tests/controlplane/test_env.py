"""Settings from the environment are parsed strictly, and refused with the name of the variable."""

from pathlib import Path

import pytest

from controlplane.env import Environment, InvalidSetting, parse_database_url
from controlplane.secret_key import secret_key


@pytest.mark.parametrize(("text", "value"), [("true", True), ("1", True), ("ON", True), ("no", False), ("0", False)])
def test_a_boolean_has_a_few_spellings(text: str, value: bool) -> None:
    assert Environment({"X": text}).boolean("X", default=not value) is value


@pytest.mark.parametrize("text", ["maybe", "2", " ", "yes please"])
def test_a_boolean_is_never_guessed(text: str) -> None:
    with pytest.raises(InvalidSetting, match="X"):
        Environment({"X": text}).boolean("X", default=True)


@pytest.mark.parametrize("text", ["1.5", "-1", "11", "ten", ""])
def test_an_integer_out_of_its_limits_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting, match="X"):
        Environment({"X": text}).integer("X", 5, minimum=0, maximum=10)


@pytest.mark.parametrize("text", ["nan", "inf", "-0.1", "x"])
def test_a_number_out_of_its_limits_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting, match="X"):
        Environment({"X": text}).number("X", 0.5, minimum=0, maximum=1)


def test_an_empty_list_item_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="empty"):
        Environment({"X": "a,,b"}).items("X")


def test_a_secret_may_stand_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("s3cret\n")
    assert Environment({"X_FILE": str(file)}).secret("X") == "s3cret"


def test_a_secret_given_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="both"):
        Environment({"X": "a", "X_FILE": str(tmp_path)}).secret("X")


def test_a_secret_file_that_is_missing_or_empty_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    for path in (tmp_path / "missing", empty):
        with pytest.raises(InvalidSetting, match="X_FILE"):
            Environment({"X_FILE": str(path)}).secret("X")


def test_a_database_url_becomes_settings() -> None:
    found = parse_database_url("DATABASE_URL", "postgres://me:p%40ss@db.example:6000/points?sslmode=require")
    assert found["NAME"] == "points"
    assert (found["USER"], found["PASSWORD"]) == ("me", "p@ss")
    assert (found["HOST"], found["PORT"]) == ("db.example", "6000")
    assert found["OPTIONS"] == {"sslmode": "require"}


@pytest.mark.parametrize("url", ["mysql://h/db", "postgres://host", "postgres://host:99999999/db", "nonsense"])
def test_a_database_url_of_another_kind_is_refused(url: str) -> None:
    with pytest.raises(InvalidSetting, match="DATABASE_URL"):
        parse_database_url("DATABASE_URL", url)


def test_a_secret_key_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    first = secret_key(None, tmp_path, production=False)
    assert secret_key(None, tmp_path, production=False) == first
    assert (tmp_path / "secret_key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]


def test_production_asks_for_a_secret_key(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="POINTSMAN_SECRET_KEY"):
        secret_key(None, tmp_path, production=True)


def test_a_short_secret_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="at least"):
        secret_key("short", tmp_path, production=False)
