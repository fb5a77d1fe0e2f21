"""Episodes of worlds over HTTP."""

import shutil
import sys

import pytest

from tests.web.conftest import serving


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


@pytest.mark.parametrize(
    "world", ["payload:Hunt", "runs.stranger.payload:Hunt", "pettingzoo:payload"]
)
def test_code_that_a_run_names_is_never_run_by_its_page(runs, monkeypatch, world):
    monkeypatch.chdir(runs.parent)
    monkeypatch.setattr(sys, "path", [*sys.path, str(runs.parent)])
    shutil.copytree(runs / "hunt", runs / "stranger")
    for place in (runs.parent, runs / "stranger"):
        (place / "payload.py").write_text("open('it_ran', 'w')")
    config = runs / "stranger/config.yaml"
    config.write_text(config.read_text().replace("world: treasure_hunt", f"world: {world}"))
    with serving(runs) as client:
        for page in ("", "/stream", "/episode?seed=1"):
            with client.stream("GET", f"/api/runs/stranger{page}") as answer:
                lines = answer.iter_lines()
                first = next(lines)
            if "episode" in page:
                assert answer.status_code == 400
                assert "keisei worlds watch stranger --trust" in first
        assert client.get("/api/runs").status_code == 200
    assert not (runs.parent / "it_ran").exists()
