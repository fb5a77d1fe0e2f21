"""Episodes of worlds over HTTP."""

import sys

from keisei.worlds.training import start_world_training
from tests.web.conftest import TINY_WORLD, serving


def test_an_episode_is_played_by_the_newest_agents(client):
    episode = client.get("/api/runs/hunt/episode?seed=3").json()
    assert (episode["height"], episode["width"], episode["agents"]) == (9, 9, 2)
    assert len(episode["frames"]) == episode["turns"] + 1 == 21
    assert len(episode["agent_colors"]) == 2
    names = [entry["name"] for entry in episode["legend"]]
    assert "wall" in names
    for frame in episode["frames"]:
        assert len(frame["cells"]) == len(frame["ground"]) == 9
        assert names[frame["cells"][0][0]] == "wall"
        for row, column, facing in frame["agents"]:
            assert facing is None
            assert names[frame["cells"][row][column]] == "agent"
    total = [sum(frame["rewards"][agent] for frame in episode["frames"]) for agent in range(2)]
    assert [round(value, 3) for value in total] == [round(v, 3) for v in episode["returns"]]


def test_a_seed_gives_the_same_episode_and_another_one_another(client):
    first = client.get("/api/runs/hunt/episode?seed=1").json()
    assert client.get("/api/runs/hunt/episode?seed=1").json() == first
    assert client.get("/api/runs/hunt/episode?seed=2").json() != first


def test_a_run_of_shogi_has_no_episodes(client):
    answer = client.get("/api/runs/first/episode")
    assert answer.status_code == 400
    assert "Shogi" in answer.json()["detail"]


def test_an_episode_of_a_world_of_ones_own_is_played(harvest_folder):
    settings = [*TINY_WORLD, "epochs=1"]
    start_world_training("harvest:Harvest", None, settings, "berries", None, None)
    with serving(harvest_folder / "runs") as client:
        assert client.get("/api/runs").json()["runs"][0]["world"] == "harvest:Harvest"
        episode = client.get("/api/runs/berries/episode").json()
        assert "berry" in [entry["name"] for entry in episode["legend"]]
        (harvest_folder / "harvest.py").unlink()
        del sys.modules["harvest"]  # as in a server that was started later
        answer = client.get("/api/runs/berries/episode?seed=2")
    assert answer.status_code == 400
    assert f"there is no module harvest in {harvest_folder}" in answer.json()["detail"]
