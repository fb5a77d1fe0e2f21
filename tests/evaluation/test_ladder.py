import json
import shlex
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from keisei.errors import KeiseiError
from keisei.evaluation.ladder import Entry, Ladder, LadderSettings, climb, find_entries
from keisei.evaluation.ladder_report import draw, run_ladder, table
from keisei.evaluation.openings import load_openings
from keisei.evaluation.yardstick import Reference, Yardstick
from tests.evaluation.simulated import QUICK

OURS = [
    Entry("weak", "greedy,random=85", steps=0, cpu_hours=0.0),
    Entry("strong", "greedy,random=35", steps=100, cpu_hours=1.0),
]


@pytest.fixture(autouse=True)
def one_core(monkeypatch):
    """Games are played in this process: others take seconds to start."""
    monkeypatch.setattr("keisei.processes.pool.cores", lambda: 1)


@pytest.fixture
def ladder():
    return Ladder(yardstick=QUICK)


def test_the_ladder_rates_a_run_between_the_references_which_stay_where_they_are(ladder, tmp_path):
    climb(ladder, OURS, LadderSettings(games=160, minutes=2), tmp_path / "ladder.json")
    ratings = ladder.ratings()
    assert (ratings["random"].elo, ratings["greedy"].elo) == (0, 1450)
    assert 0 < ratings["weak"].elo < 650 < ratings["strong"].elo < 1450
    assert ratings["strong"].width < 400


def test_a_stored_ladder_goes_on_where_it_was(ladder, tmp_path):
    path = tmp_path / "ladder.json"
    climb(ladder, OURS, LadderSettings(games=48, minutes=1), path)
    again = Ladder.load(path)
    again.yardstick = QUICK
    before = again.games_of("strong")
    stored = {r["name"]: r["elo"] for r in json.loads(path.read_text())["ratings"]}
    assert again.ratings()["strong"].elo == pytest.approx(stored["strong"])
    climb(again, OURS, LadderSettings(games=160, minutes=1), path)
    assert sum(result.games for result in Ladder.load(path).results.values()) > before
    assert again.games_of("strong") > before


def test_a_ladder_of_before_the_yardstick_loads_and_is_rated_on_it(tmp_path):
    path = tmp_path / "ladder.json"
    rows = [("step 5", "random", (40, 0, 0)), ("greedy", "step 5", (10, 20, 9))]
    data = {
        "anchor": "random",
        "prior_elo": 2000.0,
        "players": [
            {"name": name, "contestant": name, "steps": steps, "cpu_hours": None}
            for name, steps in (("random", None), ("greedy", None), ("step 5", 5))
        ],
        "results": [
            {"first": a, "second": b, "wins": w, "draws": d, "losses": lost}
            for a, b, (w, d, lost) in rows
        ],
        "ratings": [],
    }
    path.write_text(json.dumps(data))
    old = Ladder.load(path)
    assert old.games_of("step 5") == 79
    assert old.ratings()["step 5"].elo == pytest.approx(old.ratings()["greedy"].elo, abs=40)


def test_a_stored_result_against_the_network_that_was_shipped_then_still_counts_for_it(tmp_path):
    path, name = tmp_path / "ladder.json", "shipped, 15 % random"
    row = {"first": "step 5", "second": name, "pairs": [5, 0, 5, 0, 5]}
    players = [vars(Entry(name, "shipped,random=15")), vars(Entry("step 5", "5.pt", 5, 1.0))]
    path.write_text(json.dumps({"players": players, "results": [row]}))
    ladder = Ladder.load(path)
    assert set(ladder.ratings()) == {"step 5", "hour-5247503, 15 % random"}
    entry = ladder.entries["hour-5247503, 15 % random"]
    assert entry.contestant == "hour-5247503,random=15"


def test_a_pair_has_every_opening_before_one_comes_again_also_in_a_ladder_that_goes_on(
    bad_engine, tmp_path
):
    told, path = tmp_path / "told", tmp_path / "ladder.json"
    command = shlex.join(bad_engine("resigns", str(told)))
    alone = Yardstick([Reference("resigns", f"usi:{command},processes=1", 0.0, 0.0, 100, 0.1)])
    me = [Entry("random", "random", steps=0)]

    def openings():  # each game tells the engine one position: there it resigns
        lines = [line.split(" moves ")[1] for line in told.read_text().splitlines()]
        # Where the engine has White and Black makes the first move after the opening, cut that.
        every = {" ".join(opening) for opening in load_openings()}
        return Counter(line if line in every else line.rsplit(" ", 1)[0] for line in lines)

    for games in (40, 36):
        going_on = Ladder.load(path)
        going_on.yardstick = alone
        climb(going_on, me, LadderSettings(games=games, minutes=1), path)
    seen = openings()
    assert set(seen) <= {" ".join(opening) for opening in load_openings()}
    assert set(seen.values()) == {2}  # with both colours


def test_checkpoints_are_in_the_pool_with_what_went_into_them(run):
    entries = {e.name: e for e in find_entries(run, LadderSettings(checkpoints=2, nodes=(4,)))}
    assert set(entries) == {"step 0", "step 0, 4 nodes", "step 200", "step 200, 4 nodes"}
    assert entries["step 200"].steps == 200
    assert entries["step 200"].cpu_hours == pytest.approx(2.0)


def test_the_command_stores_ratings_and_draws_a_picture(run, monkeypatch, capsys):
    monkeypatch.setattr("keisei.evaluation.ladder.load_yardstick", lambda: QUICK)
    settings = LadderSettings(checkpoints=2, games=16, minutes=1)
    run_ladder(str(run.folder), run.folder.parent, settings, watch=False)
    assert (run.folder / "ladder.png").read_bytes()[:4] == b"\x89PNG"
    assert "random" in capsys.readouterr().out
    assert Ladder.load(run.folder / "ladder.json").games_of("step 200")


def test_a_second_ladder_of_a_run_is_refused_before_it_plays(run, monkeypatch):
    monkeypatch.setattr("keisei.evaluation.ladder.load_yardstick", lambda: QUICK)
    settings = LadderSettings(checkpoints=1, games=4, minutes=1)

    def begin_another(*arguments):
        with pytest.raises(KeiseiError, match=r"in use by another ladder \(process \d+\)"):
            run_ladder(str(run.folder), run.folder.parent, settings, watch=False)
        climb(*arguments)

    monkeypatch.setattr("keisei.evaluation.ladder_report.climb", begin_another)
    run_ladder(str(run.folder), run.folder.parent, settings, watch=False)
    monkeypatch.undo()
    assert Ladder.load(run.ladder_path).games_of("step 200") == 4


@pytest.fixture
def watching(run, monkeypatch):
    """Rates a run in training, one checkpoint at a time, in another thread; the training ends."""
    monkeypatch.setattr("keisei.evaluation.ladder.load_yardstick", lambda: QUICK)
    monkeypatch.setattr("keisei.evaluation.ladder_report.give_way", lambda: None)
    monkeypatch.setattr("keisei.evaluation.ladder_report._POLL", 0.01)
    settings = LadderSettings(checkpoints=1, games=4, minutes=1)

    @contextmanager
    def watch():
        with ThreadPoolExecutor() as thread:
            with run.lock():
                ladder = thread.submit(run_ladder, "small", run.folder.parent, settings, True)
                yield lambda name: wait_for_games(run, name, ladder)
            ladder.result(timeout=60)

    return watch


def wait_for_games(run, name, ladder):
    end = time.monotonic() + 60
    while not Ladder.load(run.ladder_path).games_of(name):
        assert time.monotonic() < end
        assert not ladder.done() or ladder.result()
        time.sleep(0.01)


def test_a_watched_run_is_rated_from_its_first_checkpoint_on(run, watching, tmp_path):
    aside = run.checkpoints_dir.rename(tmp_path / "aside")
    run.checkpoints_dir.mkdir()
    with watching() as wait:
        for step in (0, 100, 200):
            name = f"step_{step:012d}.pt"
            (aside / name).rename(run.checkpoints_dir / name)
            wait(f"step {step}")


def test_a_watched_run_may_remove_the_checkpoint_that_is_being_rated(run, watching, monkeypatch):
    def remove_newest(*arguments):
        max(run.checkpoints_dir.iterdir()).unlink()
        monkeypatch.setattr("keisei.evaluation.ladder_report.climb", climb)
        climb(*arguments)

    monkeypatch.setattr("keisei.evaluation.ladder_report.climb", remove_newest)
    with watching() as wait:
        wait("step 100")


def test_a_ladder_that_was_cut_short_is_drawn_without_those_who_have_not_played(ladder, tmp_path):
    climb(ladder, OURS, LadderSettings(games=2, minutes=1), tmp_path / "ladder.json")
    draw(ladder, tmp_path / "ladder.png", "short $")
    assert len(table(ladder).rows) == 2


def test_a_file_that_is_no_ladder_is_named(tmp_path):
    path = tmp_path / "ladder.json"
    path.write_text("{}")
    with pytest.raises(KeiseiError, match=r"ladder\.json"):
        Ladder.load(path)
