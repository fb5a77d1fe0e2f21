"""Playing against a network over HTTP."""

import contextlib
import json
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import httpx
import pytest

from keisei.models import SHIPPED_PATH
from keisei.models.levels import LEVELS
from keisei.shogi.records import read_record
from keisei.web import networks, play
from keisei.web.networks import Networks
from keisei.web.runs import RunsFolder
from keisei.web.schema import NewGame
from keisei.web.threads import Busy, NotFound, WebError
from scripts.measure_variety import opening
from tests.processes import run_keisei
from tests.web.conftest import serving

PLAYER = "run/first/step_000000001024.pt"
JSON = {"Content-Type": "application/json"}
MATE_IN_ONE = "4k4/9/4G4/9/9/9/9/9/4K4 b G 1"


def begin(client, **settings):
    answer = client.post("/api/play", json={"player": PLAYER, **settings})
    assert answer.status_code == 200, answer.text
    return answer.json()


def do(client, game, what, body=None, status=200):
    answer = client.post(f"/api/play/{game['id']}/{what}", json=body or {})
    assert answer.status_code == status, answer.text
    return answer.json()


def test_players_are_the_levels_and_the_checkpoints_of_all_shogi_runs(client):
    players = client.get("/api/players").json()["players"]
    assert [player["id"] for player in players] == [
        *(f"level/{number}" for number in range(1, len(LEVELS) + 1)),
        "run/first/step_000000001024.pt",
        "run/first/step_000000000512.pt",
    ]
    checkpoint = players[len(LEVELS)]
    assert checkpoint["label"] == "first, step 1,024"
    assert checkpoint["nodes"] is checkpoint["elo"] is None
    month = players[1]["elo"]
    assert month["low"] < month["rating"] < month["high"]


def test_where_nothing_was_trained_there_are_the_levels(tmp_path):
    with serving(tmp_path / "no runs yet") as client:
        assert len(client.get("/api/players").json()["players"]) == len(LEVELS)
        game = begin(client, player="level/1", side="white")
        assert len(do(client, game, "reply")["moves"]) == 1


def test_a_level_says_how_many_nodes_are_searched(client):
    number, level = next((n, one) for n, one in enumerate(LEVELS, 1) if one.nodes)
    game = begin(client, player=f"level/{number}", nodes=3200)
    assert game["nodes"] == level.nodes
    assert game["label"] == f"Keisei, {level.name}"


@pytest.mark.parametrize("nodes", [0, 20])
def test_a_game_goes_back_and_forth(client, nodes):
    game = begin(client, nodes=nodes)
    assert game["your_turn"]
    assert len(game["legal"]) == 30
    game = do(client, game, "move", {"move": "7g7f"})
    assert not game["your_turn"]
    assert game["legal"] == []
    game = do(client, game, "reply")
    assert game["your_turn"]
    assert len(game["moves"]) == 2
    assert len(game["positions"]) == len(game["values"]) == 3
    assert game["moves"][0] == {"usi": "7g7f", "western": "P-7f", "japanese": "▲７六歩"}
    assert all(-1 <= value <= 1 for value in game["values"][1:])
    assert client.get(f"/api/play/{game['id']}").json() == game


@pytest.mark.parametrize("number", [1, 7, 8, 9])
def test_of_a_levels_games_nine_in_ten_pairs_differ_by_move_ten(number, tmp_path):
    """A small part of what scripts/measure_variety.py measures, with one seed."""
    networks = Networks()
    table = play.Table(RunsFolder(tmp_path), networks, seed=1)
    human = networks.load(SHIPPED_PATH)
    games = [opening(table, number, "white", human) for _ in range(16)]
    pairs = list(combinations(games, 2))
    assert sum(one != two for one, two in pairs) >= 0.9 * len(pairs)


def test_the_terminal_and_the_page_say_the_same_of_a_position(client):
    hint = do(client, begin(client, player="level/1"), "hint")
    said = run_keisei("play", input="hint\nquit\n").stdout
    best = hint["top"][0]
    chance = round(50 * (1 + best["value"]))
    assert f"would play {best['western']} ({best['move']}), {chance} % to win" in said


def test_the_agent_moves_first_when_the_human_is_white(client):
    game = begin(client, side="white")
    assert not game["your_turn"]
    do(client, game, "move", {"move": "3c3d"}, status=409)
    game = do(client, game, "reply")
    assert game["your_turn"]
    assert do(client, game, "reply") == game  # asked twice, it moves once


def test_in_a_handicap_game_white_moves_first(client):
    assert not begin(client, start="2_pieces", side="black")["your_turn"]
    assert begin(client, start="rook", side="white")["your_turn"]


def test_illegal_moves_are_refused_and_change_nothing(client):
    game = begin(client)
    for move in ("7g7e", "1a1a", "P*5e", "hello", "", "7g7f+", "\U0001f600"):
        assert "detail" in do(client, game, "move", {"move": move}, status=400)
    assert client.get(f"/api/play/{game['id']}").json()["moves"] == []


def test_mate_wins(client, tmp_path):
    game = begin(client, start=MATE_IN_ONE)
    hint = do(client, game, "hint")
    assert hint["top"][0]["move"] == "G*5b"
    assert hint["top"][0]["value"] == hint["value"] == 1.0
    game = do(client, game, "move", {"move": "G*5b"})
    assert game["result"] == {
        "winner": "black",
        "reason": "checkmate",
        "text": "You win: checkmate.",
    }
    assert do(client, game, "reply")["moves"] == game["moves"]  # nothing more happens
    file = tmp_path / "game.kif"
    file.write_bytes(client.get(f"/api/play/{game['id']}/record?format=kif").content)
    assert str(read_record(file).outcome) == "black wins by checkmate"


def test_the_agent_mates_when_it_can(client):
    sfen = "4k4/9/9/9/9/9/4g4/9/4K4 w g 1"
    game = begin(client, start=sfen, nodes=20)
    game = do(client, game, "reply")
    assert game["result"]["text"] == "Keisei wins: checkmate."
    assert game["values"][0] == -1.0


@pytest.mark.parametrize("form", ["kif", "csa"])
def test_resignation_and_its_record(client, tmp_path, form):
    game = begin(client)
    do(client, game, "move", {"move": "7g7f"})
    reply = do(client, game, "reply")["moves"][-1]["usi"]
    result = do(client, game, "resign")["result"]
    assert result["text"] == "Keisei wins: you resigned."
    file = tmp_path / f"game.{form}"
    file.write_bytes(client.get(f"/api/play/{game['id']}/record?format={form}").content)
    record = read_record(file)
    assert record.moves == ("7g7f", reply)
    assert str(record.outcome) == "white wins by resignation"
    assert (record.black, record.white) == ("Human", "first, step 1,024")


def test_a_resignation_while_the_agent_is_to_move_is_a_comment_in_the_record(client, tmp_path):
    game = begin(client)
    do(client, game, "move", {"move": "7g7f"})
    assert do(client, game, "resign")["result"]["winner"] == "white"
    file = tmp_path / "game.kif"
    file.write_bytes(client.get(f"/api/play/{game['id']}/record").content)
    assert read_record(file).comments == {1: "Human resigns."}


def test_undo_goes_back_to_the_humans_turn(client):
    game = begin(client)
    do(client, game, "undo", status=409)
    do(client, game, "move", {"move": "7g7f"})
    do(client, game, "reply")
    do(client, game, "move", {"move": "2g2f"})
    game = do(client, game, "undo")  # while the agent was to move
    assert [len(game[part]) for part in ("moves", "positions", "values")] == [2, 3, 3]
    game = do(client, game, "undo")
    assert game["moves"] == []
    assert game["your_turn"]


def test_undo_takes_back_a_resignation_alone(client):
    game = begin(client)
    do(client, game, "move", {"move": "7g7f"})
    do(client, game, "reply")
    assert do(client, game, "resign")["result"]
    game = do(client, game, "undo")
    assert game["result"] is None
    assert len(game["moves"]) == 2


def test_hints_are_likely_moves_with_names_and_values(client):
    hint = do(client, begin(client), "hint")
    assert len(hint["top"]) == 5
    best = hint["top"][0]
    assert 0 < best["probability"] < 1
    assert -1 <= best["value"] <= 1
    assert best["western"]
    assert best["japanese"].startswith("▲")


def test_a_rematch_changes_sides_and_keeps_the_rest(client):
    game = begin(client, nodes=20, clock={"main": 60, "byoyomi": 5})
    again = do(client, game, "rematch")
    assert (again["side"], again["nodes"], again["clock"]["byoyomi"]) == ("white", 20, 5)
    odds = begin(client, start="rook", side="black")
    assert do(client, odds, "rematch")["side"] == "black"


def test_undo_and_resignation_end_the_agents_thinking(trained_runs):
    table = play.Table(RunsFolder(trained_runs), Networks())
    game = table.begin(NewGame(player=PLAYER, nodes=3200))
    for end in (table.undo, table.resign):
        table.move(game.id, "7g7f")
        with ThreadPoolExecutor(1) as thread:
            reply = thread.submit(table.reply, game.id)
            while not table._find(game.id).lock.locked() and not reply.done():
                pass
            shown = end(game.id)
            assert len(reply.result(60).moves) == 1
        assert len(shown.moves) == (0 if end == table.undo else 1)


def test_the_clock_is_kept_by_the_server(client):
    game = begin(client, clock={"main": 60, "byoyomi": 5})
    clock = game["clock"]
    assert clock["running"] == "black"
    assert 60 < clock["left"] <= 65
    game = do(client, game, "move", {"move": "7g7f"})
    assert game["clock"]["running"] is None  # the agent's runs only while it thinks
    assert do(client, game, "reply")["clock"]["running"] == "black"


def test_time_that_is_up_loses(client):
    game = begin(client, clock={"main": 0.001, "byoyomi": 0})
    for _ in range(1000):
        now = client.get(f"/api/play/{game['id']}").json()
        if now["result"]:
            break
    assert now["result"]["text"] == "Keisei wins: your time is up."
    assert do(client, game, "move", {"move": "7g7f"})["moves"] == []
    csa = client.get(f"/api/play/{game['id']}/record?format=csa").text
    assert "%TIME_UP" in csa


def test_bad_games_are_refused(client):
    for settings, status in (
        ({"player": "run/first/nothing.pt"}, 404),
        ({"player": "level/0"}, 404),
        ({"player": f"level/{len(LEVELS) + 1}"}, 404),
        ({"player": "level/1/1"}, 404),
        ({"player": "run/nobody/step_000000001024.pt"}, 404),
        ({"player": "run/hunt/../first/step_000000001024.pt"}, 404),
        ({"player": "\ud800"}, 422),
        ({"player": PLAYER, "start": "nonsense"}, 400),
        ({"player": PLAYER, "start": "4k4/4G4/4G4/9/9/9/9/9/4K4 w - 1"}, 400),  # mated
        ({"player": PLAYER, "nodes": 3201}, 422),
        ({"player": PLAYER, "nodes": -1}, 422),
        ({"player": PLAYER, "side": "red"}, 422),
        ({"player": PLAYER, "cheat": True}, 422),
        ({"player": PLAYER, "clock": {"main": -1}}, 422),
        ({}, 422),
    ):
        # Not by httpx, which refuses half a character.
        answer = client.post("/api/play", content=json.dumps(settings), headers=JSON)
        assert answer.status_code == status, (settings, answer.text)
        assert isinstance(answer.json()["detail"], str)


def test_a_checkpoint_of_a_world_cannot_be_played(client):
    file = client.get("/api/runs/hunt").json()["checkpoints"][0]["file"]
    answer = client.post("/api/play", json={"player": f"run/hunt/{file}"})
    assert answer.status_code == 400
    assert "has no network" in answer.json()["detail"]


def test_a_game_goes_on_when_training_removes_its_checkpoint(runs):
    with serving(runs) as client:
        game = begin(client, nodes=0)
        (runs / "first" / "checkpoints" / "step_000000001024.pt").unlink()
        do(client, game, "move", {"move": "7g7f"})
        game = do(client, game, "reply")
        assert len(game["moves"]) == 2
        assert do(client, game, "hint")["top"]


def test_a_checkpoint_that_is_gone_before_the_game_begins_is_one_sentence(runs, capfd):
    # Listed, but not there: as when it is removed between the list and the loading.
    (runs / "first" / "checkpoints" / "step_000000002048.pt").symlink_to("removed.pt")
    with serving(runs) as client:
        answer = client.post("/api/play", json={"player": "run/first/step_000000002048.pt"})
        assert "removed.pt" in answer.json()["detail"]
        assert "the server failed" not in answer.json()["detail"]
        begin(client)  # others can be played
    assert "Traceback" not in capfd.readouterr().err


def test_a_network_is_in_memory_once_however_many_games_have_it(runs, monkeypatch):
    monkeypatch.setattr(networks, "KEPT", 1)
    kept, folder = Networks(), runs / "first" / "checkpoints"
    mine = kept.load(folder / "step_000000001024.pt")
    other = weakref.ref(kept.load(folder / "step_000000000512.pt"))
    assert kept.load(folder / "step_000000001024.pt") is mine
    assert other() is None  # no game has it


def test_games_that_are_not_there(client):
    assert client.get("/api/play/nothing").status_code == 404
    assert client.post("/api/play/nothing/move", json={"move": "7g7f"}).status_code == 404


def test_many_players_at_once(client):
    def play_a_game(number):
        game = begin(client, nodes=number % 3 * 10)
        for move in ("7g7f", "2g2f", "1g1f"):
            if move in game["legal"]:
                game = do(client, game, "move", {"move": move})
                game = do(client, game, "reply")
        return len(game["moves"])

    with ThreadPoolExecutor(8) as threads:
        assert all(count >= 2 for count in threads.map(play_a_game, range(8)))


def test_a_game_is_not_changed_by_two_at_once(client):
    game = begin(client, nodes=20)
    do(client, game, "move", {"move": "7g7f"})
    with ThreadPoolExecutor(6) as threads:
        answers = list(
            threads.map(lambda _: client.post(f"/api/play/{game['id']}/reply", json={}), range(6))
        )
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert len(client.get(f"/api/play/{game['id']}").json()["moves"]) == 2


def test_a_game_is_shown_while_the_agent_thinks(trained_runs):
    table = play.Table(RunsFolder(trained_runs), Networks())
    game = table.begin(NewGame(player=PLAYER, side="white"))
    with table._using(game.id):
        shown = table.show(game.id)
        assert not shown.your_turn
        assert shown.moves == []
        with pytest.raises(WebError, match="thinking"):
            table.reply(game.id)


def test_games_are_bounded_and_unused_ones_forgotten(trained_runs, monkeypatch):
    monkeypatch.setattr(play, "MAX_GAMES", 2)
    table = play.Table(RunsFolder(trained_runs), Networks())
    old, _ = (table.begin(NewGame(player=PLAYER)) for _ in range(2))
    with pytest.raises(Busy, match="2 games"):
        table.begin(NewGame(player=PLAYER))
    monkeypatch.setattr(play, "FORGET_AFTER", -1.0)
    table.begin(NewGame(player=PLAYER))
    with pytest.raises(NotFound):
        table.show(old.id)


def nodes_kept(table, game):
    with table._using(game.id) as kept:
        return kept.thinker.nodes


def test_what_the_agent_found_is_kept_for_its_next_move_and_dropped_with_the_game(trained_runs):
    table = play.Table(RunsFolder(trained_runs), Networks())
    game = table.begin(NewGame(player=PLAYER, nodes=50))
    top = table.hint(game.id).top  # searched by this thread, and next by another
    assert nodes_kept(table, game) == 100
    table.move(game.id, top[0].move)
    with ThreadPoolExecutor(1) as thread:
        thread.submit(table.reply, game.id).result(60)
    assert nodes_kept(table, game) > 50
    table.resign(game.id)
    assert nodes_kept(table, game) == 0


def test_the_trees_of_all_games_are_bounded_and_the_last_one_is_kept(trained_runs, monkeypatch):
    monkeypatch.setattr(play, "ALL_NODES", 250)
    table = play.Table(RunsFolder(trained_runs), Networks())
    games = [table.begin(NewGame(player=PLAYER)) for _ in range(3)]
    for game in games:
        table.hint(game.id)
    assert [nodes_kept(table, game) for game in games] == [0, 100, 100]
    monkeypatch.setattr(play, "TREE_NODES", 10)
    small = table.begin(NewGame(player=PLAYER))
    table.hint(small.id)
    assert nodes_kept(table, small) == 10


def test_thinking_ends_when_the_server_does(trained_runs):
    with serving(trained_runs) as client:
        game = begin(client, nodes=3200)
        do(client, game, "move", {"move": "7g7f"})

        def ask():  # whether there is an answer does not matter
            with contextlib.suppress(httpx.HTTPError):
                client.post(f"/api/play/{game['id']}/reply", json={})

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
    thread.join(30)
    assert not thread.is_alive()
