"""Games that are kept, and their review over HTTP."""

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest

from keisei.models import SHIPPED_PATH
from keisei.shogi.records import GameRecord, read_record
from keisei.shogi.variations import FIRST_NODE, GameTree
from keisei.web import kept, review
from keisei.web.kept import KeptGames, KeptRecord
from keisei.web.kept_schema import Judged
from keisei.web.networks import Networks
from keisei.web.threads import Busy, NotFound, WebError
from tests.web.conftest import serving
from tests.web.test_play import MATE_IN_ONE, begin, do

SHORT = GameRecord(moves=("7g7f", "3c3d", "8h2b+", "3a2b"), black="Habu", white="Moriuchi")


def events(client, number):
    """All updates of a review, until it is done."""
    with client.stream("GET", f"/api/kept/{number}/review/stream") as answer:
        assert answer.status_code == 200, answer.read()
        lines = [line for line in answer.iter_lines() if line.startswith("data: ")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def first_game(client):
    return client.get("/api/runs/first/games?record=1").json()["games"][0]


def test_a_recorded_game_is_reviewed_from_the_first_position_to_the_last(client):
    game = first_game(client)
    kept = client.post(f"/api/runs/first/games/{game['id']}/keep", json={}).json()["id"]
    again = client.post(f"/api/runs/first/games/{game['id']}/keep", json={}).json()["id"]
    assert again == kept  # it is kept once
    shown = client.get(f"/api/kept/{kept}").json()
    assert (shown["kind"], shown["length"]) == ("recorded", game["length"])
    updates = events(client, kept)
    count = game["length"] + 1
    assert len(updates[0]["values"]) == count  # the graph is there before the first search
    assert [update["done"] for update in updates] == sorted(update["done"] for update in updates)
    found = [one for update in updates for one in update["judged"]]
    judged, second = found[:count], found[count:]
    assert [one["ply"] for one in judged] == list(range(count))
    assert judged[0]["loss"] is None
    assert all(0 <= one["loss"] <= 1 for one in judged[1:])
    assert all(one["line"][0]["usi"] == one["best"] for one in judged[:-1])
    best = [
        one["loss"]
        for one, before in zip(judged[1:], judged, strict=False)
        if before["best"] == shown["moves"][one["ply"] - 1]["usi"]
    ]
    assert set(best) <= {0.0}
    mistakes = [one["ply"] for one in judged[1:] if one["loss"] >= 0.05]
    around = {ply for after in mistakes for ply in (after - 1, after)}
    assert {one["ply"] for one in second} <= around  # looked at again
    assert bool(second) == bool(around)
    again = events(client, kept)
    assert len(again) == 1  # known: not searched again
    assert again[0]["done"] == again[0]["total"] == updates[-1]["total"]


def test_two_windows_may_review_the_same_game(client):
    calm = b"startpos moves 4i4h 6a6b 4h4i 6b6a"  # no mistakes: there is no second look
    number = client.post("/api/kept", content=calm).json()["id"]
    with ThreadPoolExecutor(3) as windows:
        ends = [window[-1] for window in windows.map(events, [client] * 3, [number] * 3)]
    assert [(end["done"], end["total"]) for end in ends] == [(5, 5)] * 3


def test_a_played_game_is_kept_and_its_blunder_found(client):
    game = begin(client, start=MATE_IN_ONE, nodes=0)
    game = do(client, game, "move", {"move": "5i5h"})  # instead of mate
    game = do(client, game, "reply")
    game = do(client, game, "resign")
    judged = [one for update in events(client, game["kept"]) for one in update["judged"]]
    assert (judged[0]["best"], judged[0]["mate"], judged[0]["value"]) == ("G*5b", 1, 1.0)
    assert judged[1]["loss"] == pytest.approx((1 - judged[1]["value"]) / 2, abs=1e-3)
    shown = client.get(f"/api/kept/{game['kept']}").json()
    assert (shown["kind"], shown["side"], shown["black"]) == ("played", "black", "Human")
    assert (shown["winner"], shown["reason"]) == ("white", "resignation")


def judged(ply, value):
    return Judged(ply=ply, value=value, mate=None, best="1g1f", line=[], top=[], loss=None)


def test_what_only_a_first_look_takes_for_a_mistake_is_none():
    found = review._Review(SHORT, network=None, values=[])
    found.add([judged(ply, value) for ply, value in enumerate((0.2, -0.2, 0.1, 0.08, 0.06))])
    assert [one.loss for one in found.found] == [None, 0.2, 0.15, 0.01, 0.0]
    assert found.again == [0, 1, 2]
    assert found.total == 8
    found.add([judged(0, 0.2), judged(1, 0.18), judged(2, 0.5)])
    assert {one.ply: one.loss for one in found.found} == {
        0: None,
        1: 0.01,
        2: 0.16,
        3: 0.01,
        4: 0.0,
    }


def test_of_too_many_mistakes_the_worst_are_looked_at_again():
    losses = [None, *([0.1, 0.0, 0.3, 0.0] * 25)]
    first = [judged(ply, 0).model_copy(update={"loss": one}) for ply, one in enumerate(losses)]
    again = review._doubtful(first)
    assert len(again) * review.LEAST <= review.MORE * len(first)
    looked_at = [losses[ply] for ply in again if losses[ply]]
    assert looked_at == [0.3] * 17


def test_the_end_of_a_game_counts_as_what_it_is(client):
    game = begin(client, start=MATE_IN_ONE)
    game = do(client, game, "move", {"move": "G*5b"})
    judged = events(client, game["kept"])[-1]["judged"]
    assert (judged[-1]["value"], judged[-1]["best"], judged[-1]["loss"]) == (1.0, None, 0.0)


def test_a_game_that_is_not_kept_cannot_be_reviewed(client):
    for path in ("", "/record", "/review/stream"):
        answer = client.get(f"/api/kept/999999{path}")
        assert answer.status_code == 404
        assert "no kept game 999999" in answer.json()["detail"]


def test_a_review_ends_when_nobody_listens(trained_runs, monkeypatch):
    with serving(trained_runs) as client:
        number = first_game(client)["id"]
        number = client.post(f"/api/runs/first/games/{number}/keep", json={}).json()["id"]
        monkeypatch.setattr(review, "MAX_REVIEWS", 1)
        with client.stream("GET", f"/api/kept/{number}/review/stream") as answer:
            lines = answer.iter_lines()
            assert next(lines) == "event: review"
            refused = client.get(f"/api/kept/{number}/review/stream")
            assert refused.status_code == 503
            assert "1 reviews are already under way" in refused.json()["detail"]
        for _ in range(1000):  # it ends within one group of positions
            with client.stream("GET", f"/api/kept/{number}/review/stream") as answer:
                if answer.status_code == 200:
                    break
        assert answer.status_code == 200


def test_kept_games_survive_a_restart(runs):
    with serving(runs) as client:
        game = begin(client, nodes=0)
        do(client, game, "move", {"move": "7g7f"})
        kept = do(client, game, "reply")["kept"]
    with serving(runs) as client:
        shown = client.get(f"/api/kept/{kept}").json()
        assert shown["moves"][0]["usi"] == "7g7f"
        assert shown["reason"] is None
        assert client.get(f"/api/play/{game['id']}").status_code == 404


def test_a_game_that_was_resigned_while_the_agent_was_to_move_is_over(runs):
    with serving(runs) as client:
        game = begin(client, nodes=0)
        do(client, game, "move", {"move": "7g7f"})
        kept = do(client, game, "resign")["kept"]
        shown = client.get(f"/api/kept/{kept}").json()
        assert (shown["winner"], shown["reason"]) == ("white", "resignation")
        client.post(f"/api/kept/{kept}/comment", json={"node": 0, "text": "too early"})
        record = client.get(f"/api/kept/{kept}/record").content.decode("cp932")
        assert "Human resigns." in record
        do(client, game, "undo")
        assert client.get(f"/api/kept/{kept}").json()["reason"] is None


def test_what_was_said_and_tried_stays_when_the_game_goes_on(client):
    game = begin(client, nodes=0)
    do(client, game, "move", {"move": "7g7f"})
    number = do(client, game, "reply")["kept"]
    home = f"/api/kept/{number}"
    client.post(f"{home}/variation", json={"parent": 0, "move": "2g2f"})
    client.post(f"{home}/variation", json={"parent": 2, "move": "6g6f"})
    client.post(f"{home}/comment", json={"node": 1, "text": "usual"})
    do(client, game, "move", {"move": "2g2f"})
    shown = client.get(home).json()
    assert [one["move"]["usi"] for one in shown["variations"]] == ["2g2f", "6g6f"]
    assert shown["comments"] == {"1": "usual"}
    do(client, game, "undo")
    do(client, game, "undo")  # now the first of them is played, and the second is gone
    do(client, game, "move", {"move": "2g2f"})
    shown = client.get(home).json()
    assert (shown["variations"], shown["comments"]) == ([], {})


def test_a_kept_game_is_what_was_kept(tmp_path):
    games = KeptGames(tmp_path / "not there yet")
    comments = {0: "before", 4: "after"}
    record = GameRecord(
        SHORT.start_sfen, SHORT.moves, "<b>A</b>", "B", None, "BLACK_WIN_BY_TIMEOUT", comments
    )
    tree, _ = GameTree(record).play(1, "8c8d")
    number = games.keep(KeptRecord(tree, "imported"))
    assert games.open(number).tree == tree
    assert games.open(number).tree.record.comments == comments
    assert (games.row(number).winner, games.row(number).reason) == ("black", "timeout")
    with pytest.raises(NotFound):
        games.open(number + 1)


def test_where_nothing_can_be_written_games_are_kept_until_the_server_stops(tmp_path, monkeypatch):
    (tmp_path / kept.FILE).write_bytes(b"no database" * 100)
    games = KeptGames(tmp_path)
    number = games.keep(KeptRecord(GameTree(SHORT), "imported"))
    assert games.open(number).tree.record == SHORT
    assert "not a database" in games.problem
    monkeypatch.setattr(kept, "MAX_IN_MEMORY", 1)
    with pytest.raises(WebError, match="1 games are kept already"):
        games.keep(KeptRecord(GameTree(SHORT), "imported"))
    assert (tmp_path / kept.FILE).read_bytes() == b"no database" * 100


def test_a_file_of_another_program_or_a_link_is_not_written(tmp_path):
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE mine (a)")
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / kept.FILE).symlink_to(other)
    (tmp_path / "two").mkdir()
    other.rename(tmp_path / "two" / kept.FILE)
    for folder in ("one", "two"):
        games = KeptGames(tmp_path / folder)
        games.keep(KeptRecord(GameTree(SHORT), "imported"))
        assert games.problem


def test_a_record_of_a_kept_game_can_be_downloaded(client, tmp_path):
    game = first_game(client)
    number = client.post(f"/api/runs/first/games/{game['id']}/keep", json={}).json()["id"]
    for form in ("kif", "csa"):
        file = tmp_path / f"game.{form}"
        file.write_bytes(client.get(f"/api/kept/{number}/record?format={form}").content)
        assert len(read_record(file).moves) == game["length"]


def test_too_many_reviews_are_refused(tmp_path, monkeypatch):
    reviews = review.Reviews(KeptGames(tmp_path), Networks(), lambda: False)
    monkeypatch.setattr(review, "MAX_REVIEWS", 0)
    with pytest.raises(Busy):
        reviews.refuse_too_many()


def test_the_list_of_games_loads_the_network_for_the_first_review(tmp_path):
    with serving(tmp_path) as client:
        assert client.get("/api/kept").json()["games"] == []
        number = client.post("/api/kept", content=b"startpos moves 7g7f").json()["id"]
        assert events(client, number)[-1]["done"] == 2  # as if nothing had happened
    networks = Networks()
    reviews = review.Reviews(KeptGames(tmp_path), networks, lambda: False)
    for _ in range(2):
        reviews.get_ready()
    reviews.threads._pool.shutdown(wait=True)
    assert [path for path, *_ in networks._kept] == [SHIPPED_PATH]


def test_a_tried_move_says_what_it_keeps(client):
    number = client.post("/api/kept", content=f"{MATE_IN_ONE} moves 5i5h".encode()).json()["id"]
    judge = f"/api/kept/{number}/judge"
    mate = client.post(judge, json={"moves": ["G*5b"]}).json()
    assert mate["judged"]["loss"] == 0.0
    assert mate["move"]["western"] == "G*5b"
    other = client.post(judge, json={"moves": ["G*1i"]}).json()
    assert other["before"]["best"] == "G*5b"
    assert other["judged"]["loss"] > 0
    assert client.post(judge, json={"moves": []}).json()["before"] is None
    for moves in (["5i5g"], ["nonsense"], ["G*5b", "5a5b"]):
        assert client.post(judge, json={"moves": moves}).status_code in (400, 422)


def test_a_tried_move_is_judged_by_what_the_review_says(client):
    moves = ["7g7f", "3c3d", "9g9f", "8c8d", "8h2b+", "3a2b"]
    number = client.post("/api/kept", content=" ".join(moves).encode()).json()["id"]
    newest = {one["ply"]: one for update in events(client, number) for one in update["judged"]}
    for ply in range(len(moves)):
        line = [*moves[:ply], newest[ply]["best"]]
        found = client.post(f"/api/kept/{number}/judge", json={"moves": line}).json()
        assert found["before"] == newest[ply]
        assert (
            found["judged"]["loss"] == 0.0
        )  # else who plays the answer would hear of a better one


def test_variations_and_comments_are_kept_with_the_game_and_exported(client):
    number = client.post("/api/kept", content=b"startpos moves 7g7f 3c3d 2g2f").json()["id"]
    home = f"/api/kept/{number}"
    first = client.post(f"{home}/variation", json={"parent": 1, "move": "8c8d"}).json()
    node = first["node"]
    second = client.post(f"{home}/variation", json={"parent": node, "move": "2g2f"}).json()
    assert [one["move"]["western"] for one in second["game"]["variations"]] == ["P-8d", "P-2f"]
    client.post(f"{home}/comment", json={"node": node, "text": "A rook's pawn \u00fc"})
    shown = client.post(f"{home}/comment", json={"node": 2, "text": "main"}).json()
    assert shown == client.get(home).json()
    assert shown["comments"] == {"2": "main"}
    answer = client.get(f"{home}/record")
    assert ".kifu" in answer.headers["content-disposition"]  # CP932 has no umlaut
    again = client.post("/api/kept", content=answer.content).json()["id"]
    copy = client.get(f"/api/kept/{again}").json()
    assert [(one["parent"], one["comment"]) for one in copy["variations"]] == [
        (1, "A rook's pawn \u00fc"),
        (FIRST_NODE + 1, ""),
    ]
    pruned = client.delete(f"{home}/variation/{node}").json()
    assert pruned["variations"] == []
    for body in ({"parent": 1, "move": "8c8e"}, {"parent": 77, "move": "8c8d"}):
        assert client.post(f"{home}/variation", json=body).status_code == 400
