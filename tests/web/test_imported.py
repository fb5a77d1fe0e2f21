"""Records that somebody pastes or drops: they are read, or refused in one sentence."""

import random
from pathlib import Path

import pytest

from keisei.shogi.records import GameRecord, record_bytes
from keisei.web.imports import read_text
from keisei.web.security import MAX_RECORD
from keisei.web.threads import WebError
from tests.web.conftest import serving

MOVES = ("7g7f", "3c3d", "8h2b+", "3a2b", "B*5e", "B*4d")
RECORD = GameRecord(moves=MOVES, black="羽生", white="森内", comments={2: "Both open."})
SFEN = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.mark.parametrize("suffix", [".kif", ".kifu", ".ki2", ".ki2u", ".csa", ".usi"])
def test_every_format_is_told_by_its_text(suffix):
    assert read_text(record_bytes(RECORD, f"game{suffix}")).record.moves == MOVES


@pytest.mark.parametrize(
    ("text", "start", "moves"),
    [
        (SFEN, SFEN, ()),
        (f"sfen {SFEN}", SFEN, ()),
        (f"position sfen {SFEN} moves G*5b", SFEN, ("G*5b",)),
        (f"{SFEN} moves G*5b", SFEN, ("G*5b",)),
        ("4k4/9/4P4/9/9/9/9/9/4K4 b G", SFEN, ()),
        ("startpos moves 7g7f", GameRecord().start_sfen, ("7g7f",)),
        ("startpos", GameRecord().start_sfen, ()),
        (" 7g7f 3c3d\n", GameRecord().start_sfen, ("7g7f", "3c3d")),
    ],
)
def test_positions_and_bare_moves_are_read(text, start, moves):
    record = read_text(text.encode()).record
    assert (record.start_sfen, record.moves) == (start, moves)


def test_a_real_record_of_1711_is_read():
    record = read_text((Path(__file__).parent / "records" / "1711.ki2").read_bytes()).record
    assert (record.black, len(record.moves)) == ("六代大橋宗銀", 107)
    assert str(record.outcome) == "white wins by resignation"


HOSTILE = {
    "nothing": (b"", "not a game record"),
    "256 KB of empty lines": (b"\n" * 2**18, "not a game record"),  # once the work of an hour
    "prose": (b"Dear Sir, this is not a game.", "not a game record"),
    "bad bytes": (b"\xff\xfe\x00\x81" * 100, "not a game record"),
    "bad bytes in a record": (record_bytes(RECORD, "a.kif") + b"\x81\n", "neither UTF-8 nor"),
    "100,000 moves": (b"position startpos moves " + b"7g7f " * 40_000, "more than 1,000 moves"),
    "moves of KIF": (b"".join(b"%d 7\x8el\n" % n for n in range(9000)), "more than|not a game"),
    "an illegal move": (b"position startpos moves 7g7e", "7g7e"),
    "a missing king": (b"9/9/9/9/9/9/9/9/9 b - 1", "cannot be read"),
    "two games": (b"position startpos moves 7g7f\nposition startpos", "second game"),
    "a drop that cannot be": ("▲７六歩 △３四歩 ▲５五角打".encode(), "not a legal move|illegal"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_cannot_be_read_is_refused_in_one_sentence(name):
    data, why = HOSTILE[name]
    with pytest.raises(WebError, match=why) as found:
        read_text(data)
    assert len(str(found.value)) < 400


def test_damaged_records_never_do_more_than_fail():
    rng = random.Random(5)
    for suffix in (".kif", ".ki2u", ".csa", ".usi"):
        whole = record_bytes(RECORD, f"game{suffix}")
        for _ in range(150):
            data = bytearray(whole)
            for _ in range(rng.randrange(1, 6)):
                at = rng.randrange(len(data))
                data[at : at + rng.randrange(4)] = bytes(
                    rng.choices(range(256), k=rng.randrange(4))
                )
            try:
                record = read_text(bytes(data)).record
            except WebError:
                continue
            assert isinstance(record, GameRecord)


def test_an_imported_game_is_kept_listed_found_downloaded_and_deleted(tmp_path):
    with serving(tmp_path) as client:
        data = record_bytes(GameRecord(moves=MOVES, black=MARKUP, white="100%_"), "a.kifu")
        number = client.post("/api/kept", content=data).json()["id"]
        other = client.post("/api/kept", content=b"startpos moves 7g7f").json()["id"]
        listed = client.get("/api/kept").json()
        assert [game["id"] for game in listed["games"]] == [other, number]
        assert (listed["total"], listed["problem"]) == (2, None)
        assert listed["games"][1]["black"] == MARKUP
        for search, expected in (("onerror", 1), ("0%_", 1), ("%", 1), ("nobody", 0), ("", 2)):
            assert client.get("/api/kept", params={"search": search}).json()["total"] == expected
        assert client.get("/api/kept?kind=played").json()["games"] == []
        assert MARKUP in client.get(f"/api/kept/{number}/record").content.decode("cp932")
        assert client.delete(f"/api/kept/{number}").status_code == 200
        assert client.delete(f"/api/kept/{number}").status_code == 404
        assert client.get("/api/kept").json()["total"] == 1


def test_a_record_that_is_too_large_is_refused_before_it_is_read(tmp_path):
    with serving(tmp_path) as client:
        answer = client.post("/api/kept", content=b"x" * (MAX_RECORD + 1))
        assert answer.status_code == 413
        assert f"{MAX_RECORD:,} bytes" in answer.json()["detail"]
        answer = client.post("/api/play", content=b"x" * MAX_RECORD)
        assert answer.status_code == 413  # only records may be larger


def test_no_other_site_can_delete_games(tmp_path):
    with serving(tmp_path) as client:
        number = client.post("/api/kept", content=b"startpos moves 7g7f").json()["id"]
        for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            assert client.delete(f"/api/kept/{number}", headers=headers).status_code == 403
        assert client.get("/api/kept").json()["total"] == 1
