"""Recorded games over HTTP: lists, replays, files."""

import sqlite3

import pytest

from keisei.shogi.records import read_record
from tests.web.conftest import serving


def test_self_play_and_evaluation_games_are_listed_newest_first(client):
    everything = client.get("/api/runs/first/games").json()
    ids = [game["id"] for game in everything["games"]]
    assert everything["total"] == len(ids)
    assert ids == sorted(ids, reverse=True)
    assert {game["kind"] for game in everything["games"]} == {"self-play", "evaluation"}
    assert all(game["has_record"] for game in everything["games"])


def test_evaluation_games_name_both_sides(client):
    games = client.get("/api/runs/first/games?kind=evaluation").json()["games"]
    assert games
    assert {frozenset((game["black"], game["white"])) for game in games} == {
        frozenset(("first", "random"))
    }


def test_games_are_filtered_and_cut_into_pages(client):
    everything = client.get("/api/runs/first/games").json()
    page = client.get("/api/runs/first/games?offset=1&limit=2").json()
    assert page["games"] == everything["games"][1:3]
    assert page["total"] == everything["total"]
    drawn = client.get("/api/runs/first/games?winner=none").json()
    assert all(game["winner"] is None for game in drawn["games"])
    assert drawn["total"] == sum(game["winner"] is None for game in everything["games"])
    assert "move limit" in everything["reasons"]
    same = client.get("/api/runs/first/games?reason=move limit&record=1").json()
    assert {game["reason"] for game in same["games"]} == {"move limit"}


def test_a_game_is_replayed_with_a_value_for_every_position(client):
    number = client.get("/api/runs/first/games?kind=evaluation").json()["games"][0]["id"]
    game = client.get(f"/api/runs/first/games/{number}").json()
    count = game["length"]
    assert len(game["moves"]) == count
    assert len(game["positions"]) == len(game["values"]) == count + 1
    assert all(-1 <= value <= 1 for value in game["values"])
    assert game["positions"][0]["last"] is None
    for move, position in zip(game["moves"], game["positions"][1:], strict=True):
        assert position["last"] == move["usi"]
        assert move["japanese"][0] in "▲△"
    assert [position["turn"] for position in game["positions"][:2]] == ["black", "white"]


@pytest.mark.parametrize("form", ["kif", "csa"])
def test_a_downloaded_game_is_the_same_game(client, tmp_path, form):
    row = client.get("/api/runs/first/games?kind=self-play").json()["games"][0]
    answer = client.get(f"/api/runs/first/games/{row['id']}/record?format={form}")
    assert f"first-{row['id']}.{form}" in answer.headers["content-disposition"]
    file = tmp_path / f"game.{form}"
    file.write_bytes(answer.content)
    moves = client.get(f"/api/runs/first/games/{row['id']}").json()["moves"]
    assert read_record(file).moves == tuple(move["usi"] for move in moves)


def test_games_that_are_not_there(client):
    assert client.get("/api/runs/first/games/99999").status_code == 404
    assert client.get("/api/runs/first/games/99999/record").status_code == 404
    assert client.get("/api/runs/nobody/games").status_code == 404
    huge = client.get(f"/api/runs/first/games/{10**30}")
    assert huge.status_code in (404, 422)


def test_a_record_that_is_gone_or_outside_is_not_read(runs, tmp_path):
    secret = tmp_path / "secret.kif"
    secret.write_text("手合割：平手")
    (runs / "first" / "games" / "link.kif").symlink_to(secret)
    with sqlite3.connect(runs / "first" / "metrics.sqlite") as db:
        db.execute("UPDATE games SET file = '../../../secret.kif' WHERE id = 1")
        db.execute("UPDATE games SET file = ? WHERE id = 2", (str(secret),))
        db.execute("UPDATE games SET file = 'link.kif' WHERE id = 3")
        db.execute("UPDATE games SET file = 'gone.kif' WHERE id = 4")
    with serving(runs) as client:
        for number, status in ((1, 404), (2, 404), (3, 400), (4, 404)):
            for address in (f"games/{number}", f"games/{number}/record"):
                answer = client.get(f"/api/runs/first/{address}")
                assert answer.status_code == status
                assert "手合割" not in answer.text


def test_where_the_newest_checkpoint_was_just_removed_games_have_no_values(runs):
    (runs / "first" / "checkpoints" / "step_000000002048.pt").symlink_to("removed.pt")
    with serving(runs) as client:
        assert set(client.get("/api/runs/first/games/1").json()["values"]) == {None}


def test_a_run_without_a_good_checkpoint_has_games_without_values(runs):
    for path in (runs / "first" / "checkpoints").iterdir():
        path.write_bytes(b"cut")
    with serving(runs) as client:
        assert set(client.get("/api/runs/first/games/1").json()["values"]) == {None}


def test_a_position_and_what_is_legal_in_it(client):
    answer = client.get("/api/position", params={"sfen": "startpos"}).json()
    assert answer["position"]["turn"] == "black"
    assert len(answer["legal"]) == 30
    assert client.get("/api/position", params={"sfen": "2_pieces"}).json()["position"]["turn"] == (
        "white"
    )
    for bad in ("", "nonsense", "9/9/9/9/9/9/9/9/9 b - 1", "\U0001f600"):
        answer = client.get("/api/position", params={"sfen": bad})
        assert answer.status_code == 400
        assert answer.json()["detail"]
