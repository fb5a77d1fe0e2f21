"""Analysis of one position over HTTP: several lines, for as long as somebody listens."""

import asyncio
import json
from pathlib import Path

import httpx
import pytest

from keisei.web import analysis, review
from tests.web.conftest import serving
from tests.web.test_play import MATE_IN_ONE

RECORD = Path(__file__).parent / "records" / "1711.ki2"  # it takes a while
MANY = 60
MATED = "4k4/4G4/4P4/9/9/9/9/9/4K4 w - 1"


def bring(client, record):
    return client.post("/api/kept", content=record.encode()).json()["id"]


def updates(client, number, node=0, most=1000):
    """The updates of an analysis, at most so many; then nobody listens any more."""
    found = []
    with client.stream("GET", f"/api/kept/{number}/analysis/stream?node={node}") as answer:
        assert answer.status_code == 200, answer.read()
        for line in answer.iter_lines():
            if line.startswith("data: "):
                found.append(json.loads(line.removeprefix("data: ")))
            if len(found) == most:
                break
    return found


def test_several_lines_are_searched_deeper_and_deeper(client):
    found = updates(client, bring(client, "startpos moves 7g7f"), node=1, most=3)
    nodes = [one["nodes"] for one in found]
    assert nodes == [analysis.FIRST, *(analysis.FIRST + n * analysis.STEP for n in (1, 2))]
    assert not any(one["over"] for one in found)
    lines = found[-1]["lines"]
    firsts = [line["moves"][0]["usi"] for line in lines]
    assert len(set(firsts)) == analysis.LINES
    assert all(move[1] in "abc" for move in firsts)  # White's moves
    assert all(len(line["moves"]) > 1 and -1 <= line["value"] <= 1 for line in lines)


def test_a_proven_mate_and_a_mated_king_end_it(client):
    (mate,) = updates(client, bring(client, MATE_IN_ONE))
    assert mate["over"]
    assert (mate["lines"][0]["moves"][0]["usi"], mate["lines"][0]["mate"]) == ("G*5b", 1)
    (mated,) = updates(client, bring(client, MATED))
    assert mated == {"nodes": 0, "over": True, "lines": []}


def test_it_ends_when_the_tree_is_as_large_as_it_may_become(client, monkeypatch):
    monkeypatch.setattr(analysis, "MOST_NODES", 500)
    found = updates(client, bring(client, "startpos"))
    assert [one["over"] for one in found] == [False, False, True]
    assert found[-1]["nodes"] == 500


def test_a_variation_is_analysed_and_what_is_not_there_is_refused(client):
    number = bring(client, "startpos moves 7g7f")
    home = f"/api/kept/{number}"
    node = client.post(f"{home}/variation", json={"parent": 0, "move": "2g2f"}).json()["node"]
    assert updates(client, number, node, most=1)[0]["nodes"] == analysis.FIRST
    answer = client.get(f"{home}/analysis/stream?node=7")
    assert (answer.status_code, answer.json()["detail"]) == (400, "this game has no node 7")
    assert client.get("/api/kept/999999/analysis/stream").status_code == 404


@pytest.mark.parametrize(
    ("what", "module", "limit"),
    [("review", review, "MAX_REVIEWS"), ("analysis", analysis, "MAX_ANALYSES")],
)
def test_of_many_that_begin_at_once_no_more_than_may_be_are_served(
    tmp_path, monkeypatch, what, module, limit
):
    monkeypatch.setattr(module, limit, 3)

    said = []

    async def listen(client, number):
        """What the stream says first; whoever is served listens until all have been answered."""
        async with client.stream("GET", f"/api/kept/{number}/{what}/stream") as answer:
            assert answer.status_code in (200, 503)
            served = answer.status_code == 200
            said.append(await anext(answer.aiter_lines()) if served else "refused")
            while served and len(said) < MANY:
                await asyncio.sleep(0.01)

    async def all_at_once(address, number):
        limits = httpx.Limits(max_connections=MANY)
        async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:
            await asyncio.gather(*(listen(client, number) for _ in range(MANY)))

    with serving(tmp_path) as client:
        number = client.post("/api/kept", content=RECORD.read_bytes()).json()["id"]
        asyncio.run(all_at_once(str(client.base_url), number))
    assert said.count(f"event: {what}") == 3
    assert set(said) <= {f"event: {what}", "event: problem", "refused"}
