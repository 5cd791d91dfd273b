"""Why did this request go there: any request of any worker, by its id, for a while after it was placed."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from controlplane.policies.presets import PRESETS
from tests.e2e.explaining import explained, forgotten_by
from tests.e2e.plant import Plant, small_fleet
from tests.e2e.processes import eventually

pytestmark = pytest.mark.timeout(1200)
OTHERS = 30


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    found = Plant(tmp_path_factory.mktemp("plant"))
    found.prepare()
    with ExitStack() as stack:
        stack.enter_context(small_fleet(found))
        stack.enter_context(found.routing(0))
        stack.enter_context(found.routing(1))
        eventually(lambda: found.convergence()["applied"], "both workers run the newest configuration")
        yield found
        found.api.close()


def test_any_request_of_any_worker_is_explained_as_its_answer_said(plant: Plant) -> None:
    answer = plant.chat(1, **{"x-request-id": "the/one:that.matters"})
    for number in range(OTHERS):
        plant.chat(number % 2)
    found = explained(plant.api, "the/one:that.matters")
    winner = found["candidates"][0]
    assert found["request_id"] == answer.headers["x-pointsman-request-id"] == "the/one:that.matters"
    assert found["chosen"] == winner["instance"] == answer.headers["x-pointsman-instance"]
    assert winner["score"] == pytest.approx(float(answer.headers["x-pointsman-score"]), rel=1e-5)
    assert winner["score"] == winner["p_token"] * winner["bs"]
    assert found["policy"] == answer.headers["x-pointsman-policy"]
    assert {one["policy"]: one["chosen"] for one in found["alternatives"]}["default@1"] == found["chosen"]
    assert winner["load"] is not None
    unknown = {one["policy"]: one["unknown"] for one in found["alternatives"]}
    assert {preset.name for preset in PRESETS} <= unknown.keys()
    assert all(not why or "no hardware profile" in why or "draws lots" in why for why in unknown.values()), unknown


def test_what_was_asked_for_is_kept(plant: Plant) -> None:
    plant.chat(0, **{"x-request-id": "kept"})
    first = explained(plant.api, "kept")
    for number in range(OTHERS):
        plant.chat(number % 2)
    assert explained(plant.api, "kept") == first


def test_of_an_id_that_is_used_again_the_newest_decision_is_told(plant: Plant) -> None:
    told = []
    for worker in (0, 0, 1, 0):
        answer = plant.chat(worker, **{"x-request-id": "used-again"})
        told.append(found := explained(plant.api, "used-again"))
        assert found["candidates"][0]["score"] == pytest.approx(float(answer.headers["x-pointsman-score"]), rel=1e-5)
    times = [found["time_unix_s"] for found in told]
    assert times == sorted(set(times))


def test_a_request_that_was_never_here_is_not_found_and_all_workers_were_asked(plant: Plant) -> None:
    eventually(lambda: forgotten_by(plant.api, "never-sent") == 2, "both workers say that it was never here")


def test_what_is_no_id_is_refused(plant: Plant) -> None:
    assert plant.api.get("/api/v1/decisions/two words/").status_code == 400


def test_samples_are_listed(plant: Plant) -> None:
    plant.chat(0, **{"x-request-id": "listed"})

    def listed() -> bool:
        found = plant.api.get("/api/v1/decisions/", params={"workload": "default", "limit": 1000}).json()
        return "listed" in {one["request_id"] for one in found["decisions"]}

    assert eventually(listed, "a sample of it came")
    assert plant.api.get("/api/v1/decisions/", params={"limit": 0}).status_code == 400
