"""Game records: written, read back and shown, as real files."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.cells import cell_len
from rich.console import Console

from keisei.shogi import HANDICAPS, Outcome, ShogiGame, VectorShogi
from keisei.shogi.board_text import board_text
from keisei.shogi.records import SUFFIXES, GameRecord, RecordError, read_record, write_record
from keisei.shogi.replay import run_replay
from keisei.shogi.rules import START_SFEN

WITH_NAMES = [suffix for suffix in SUFFIXES if suffix not in (".usi", ".sfen")]


def random_record(seed: int, start: str | None = None, moves: int = 80) -> GameRecord:
    game, choose = ShogiGame(start), random.Random(seed)
    while not game.outcome and len(game.moves) < moves:
        game.push_usi(choose.choice(game.legal_usi()))
    return GameRecord.from_game(game, black="先手 太郎", white="random, 2")


def finished_records() -> Iterator[GameRecord]:
    games = VectorShogi(4, seed=5, move_limit=150, start_sfens=[START_SFEN, *HANDICAPS.values()])
    for _ in range(450):
        for game in games.step(games.random_actions()).finished:
            yield GameRecord.from_finished(game, black="a", white="b")


def ended(sfen: str | None, moves: str, *, resign: bool = False) -> GameRecord:
    game = ShogiGame(sfen, move_limit=18)
    for usi in moves.split():
        game.push_usi(usi)
    if resign:
        game.resign()
    assert game.outcome
    return GameRecord.from_game(game)


MATE = ended("4k4/9/4P4/9/9/9/9/9/4K4 b G 1", "G*5b")
NO_MOVE = ended("k8/9/9/9/9/9/9/1R7/1K7 b G 1", "G*9c")
REPETITION = ended(None, "5i5h 5a5b 5h5i 5b5a " * 3)
PERPETUAL = ended("4k4/9/9/9/9/9/9/3R5/4K4 b - 1", "6h5h " + "5a4a 5h4h 4a5a 4h5h " * 3)
LIMIT = ended(None, " ".join(f"{n}g{n}f {n}c{n}d" for n in range(1, 10)))
DECLARED = ended("RBGKGSS2/RBPPPPP2/9/9/9/9/9/9/4k4 w 2G2S9P 1", "5i5h")
RESIGNED = ended(None, "7g7f 3c3d", resign=True)
ENDINGS = {
    "checkmate": MATE,
    "no legal move": NO_MOVE,
    "repetition": REPETITION,
    "perpetual check": PERPETUAL,
    "move limit": LIMIT,
    "declaration": DECLARED,
    "resignation": RESIGNED,
}


def back(record: GameRecord, path: Path) -> GameRecord:
    write_record(record, path)
    return read_record(path)


def save(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def error_of(path: Path, text: str, encoding: str = "utf-8") -> str:
    with pytest.raises(RecordError) as caught:
        read_record(save(path, text, encoding))
    assert str(path) in str(caught.value)
    return str(caught.value)


# -- there and back ------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", WITH_NAMES)
@pytest.mark.parametrize("start", [START_SFEN, *HANDICAPS.values()], ids=["even", *HANDICAPS])
def test_a_game_from_any_start_comes_back_the_same(tmp_path, suffix, start):
    record = random_record(1, start)
    assert back(record, tmp_path / f"game{suffix}") == record


@pytest.mark.parametrize("suffix", [".usi", ".sfen"])
@pytest.mark.parametrize("start", [START_SFEN, *HANDICAPS.values()], ids=["even", *HANDICAPS])
def test_usi_keeps_start_and_moves(tmp_path, suffix, start):
    record = random_record(2, start)
    copy = back(record, tmp_path / f"game{suffix}")
    assert (copy.start_sfen, copy.moves) == (record.start_sfen, record.moves)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("seed", range(6))
def test_positions_from_the_middle_of_games_come_back_as_starts(tmp_path, suffix, seed):
    middle = random_record(seed, moves=51 + seed).game().sfen()
    record = random_record(seed, middle)
    copy = back(record, tmp_path / f"game{suffix}")
    assert record.start_sfen == middle.rpartition(" ")[0] + " 1"
    assert (copy.start_sfen, copy.moves) == (record.start_sfen, record.moves)


@pytest.mark.parametrize("suffix", WITH_NAMES)
def test_games_that_workers_finish_come_back_the_same(tmp_path, suffix):
    records = list(finished_records())
    assert len(records) > 8
    for record in records:
        assert back(record, tmp_path / f"game{suffix}") == record


@pytest.mark.parametrize("suffix", WITH_NAMES)
@pytest.mark.parametrize("reason", ENDINGS)
def test_every_outcome_comes_back(tmp_path, suffix, reason):
    record = ENDINGS[reason]
    assert record.outcome is not None
    assert record.outcome.reason == reason
    assert back(record, tmp_path / f"game{suffix}") == record


@pytest.mark.parametrize("reason", ["checkmate", "no legal move", "repetition", "perpetual check"])
def test_usi_gives_the_outcomes_that_the_rules_give(tmp_path, reason):
    assert back(ENDINGS[reason], tmp_path / "game.usi") == ENDINGS[reason]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_game_without_moves_comes_back(tmp_path, suffix):
    assert back(GameRecord(), tmp_path / f"game{suffix}") == GameRecord()


@pytest.mark.parametrize("suffix", WITH_NAMES)
def test_comments_come_back(tmp_path, suffix):
    record = GameRecord(moves=("7g7f", "3c3d"), comments={0: "first\nsecond", 2: "the end"})
    assert back(record, tmp_path / f"game{suffix}").comments == record.comments


def test_a_timeout_survives_from_kif_to_csa(tmp_path):
    path = save(tmp_path / "game.kifu", "手合割：平手\n   1 ７六歩(77)\n   2 切れ負け\n")
    record = read_record(path)
    assert (record.outcome, record.ending) == (None, "BLACK_WIN_BY_TIMEOUT")
    assert back(record, tmp_path / "game.csa") == record
    assert "%TIME_UP" in (tmp_path / "game.csa").read_text()


def test_names_cannot_add_lines_to_a_record(tmp_path):
    record = GameRecord(black="me\n+7776FU", white=" you ")
    assert (record.black, record.white) == ("me +7776FU", "you")
    assert back(record, tmp_path / "game.csa") == record


def test_a_record_with_an_illegal_move_cannot_be_made():
    with pytest.raises(RecordError, match=r"illegal move 2 \(3c3e\)"):
        GameRecord(moves=("7g7f", "3c3e"))
    with pytest.raises(RecordError, match="move 2: '&' is not a USI move"):
        GameRecord(moves=("7g7f", "&"))


# -- encodings -----------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["cp932", "utf-8", "utf-8-sig"])
@pytest.mark.parametrize("suffix", [".kif", ".kifu", ".ki2", ".csa"])
def test_files_are_read_in_cp932_and_utf8_with_and_without_mark(tmp_path, suffix, encoding):
    path = tmp_path / f"game{suffix}"
    record = random_record(3)
    write_record(record, path)
    text = path.read_bytes().decode("cp932" if suffix in (".kif", ".ki2") else "utf-8")
    assert read_record(save(path, text, encoding)) == record


def test_kif_is_written_in_cp932_and_kifu_in_utf8(tmp_path):
    record = GameRecord(black="羽生")
    for suffix, encoding in ((".kif", "cp932"), (".kifu", "utf-8"), (".csa", "utf-8")):
        write_record(record, tmp_path / f"game{suffix}")
        assert "羽生" in (tmp_path / f"game{suffix}").read_bytes().decode(encoding)


def test_a_character_that_cp932_lacks_is_refused_and_the_old_file_stays(tmp_path):
    write_record(GameRecord(black="old"), tmp_path / "game.kif")
    with pytest.raises(RecordError, match=r"CP932 has no 'ü'; use \.kifu, which is UTF-8"):
        write_record(GameRecord(black="Müller"), tmp_path / "game.kif")
    assert read_record(tmp_path / "game.kif").black == "old"
    assert back(GameRecord(black="Müller"), tmp_path / "game.kifu").black == "Müller"


# -- files as they are -----------------------------------------------------------------------------


def test_a_messy_csa_file_is_read(tmp_path):
    text = """'----------floodgate----------
N+Engine A v1.0
$EVENT:wdoor+floodgate-300-10F
$TIME_LIMIT:00:05+10
P1-KY-KE-GI-KI-OU-KI-GI-KE-KY
P2 * -HI *  *  *  *  * -KA *
P3-FU-FU-FU-FU-FU-FU-FU-FU-FU
P4 *  *  *  *  *  *  *  *  *
P5 *  *  *  *  *  *  *  *  *
P6 *  *  *  *  *  *  *  *  *
P7+FU+FU+FU+FU+FU+FU+FU+FU+FU
P8 * +KA *  *  *  *  * +HI *
P9+KY+KE+GI+KI+OU+KI+GI+KE+KY
'rating:A+1:B+2
+
+7776FU
T12
'** 30 -3334FU +2726FU
-3334FU,T1
'*a comment to keep
T2

+8822UM,T3,-3122GI,T1
%TORYO
'summary:toryo:A lose:B win
"""
    record = read_record(save(tmp_path / "game.csa", text.replace("\n", "\r\n")))
    assert record.moves == ("7g7f", "3c3d", "8h2b+", "3a2b")
    assert (record.black, record.white) == ("Engine A v1.0", "")
    assert record.outcome == Outcome("white", "resignation")
    assert record.comments == {2: "a comment to keep"}


@pytest.mark.parametrize(
    ("end", "ending"),
    [
        ("#TIME_UP\n#LOSE", "WHITE_WIN_BY_TIMEOUT"),
        ("#TIME_UP", "WHITE_WIN_BY_TIMEOUT"),
        ("%TIME_UP\n#TIME_UP\n#WIN", "WHITE_WIN_BY_TIMEOUT"),
        ("#SOMETHING_NEW", None),
    ],
)
def test_a_csa_file_with_the_words_of_a_server_is_read(tmp_path, end, ending):
    text = f"V2.2\nPI\n+\n+7776FU\nT1\n** 30 -3334FU\n'** 31\n-3334FU\n{end}\n"
    record = read_record(save(tmp_path / "game.csa", text))
    assert record.moves == ("7g7f", "3c3d")
    assert record.ending == ending


def test_a_csa_file_of_moves_only_is_read(tmp_path):
    record = read_record(save(tmp_path / "game.csa", "+7776FU\n-3334FU"))
    assert (record.start_sfen, record.moves) == (START_SFEN, ("7g7f", "3c3d"))


def test_a_csa_handicap_by_pi_is_read(tmp_path):
    record = read_record(save(tmp_path / "game.csa", "PI82HI22KA\n-\n-3334FU\n"))
    assert record.start_sfen == HANDICAPS["2_pieces"]


def test_a_messy_kif_file_is_read(tmp_path):
    text = """# ---- Kifu for Windows V7 ----
開始日時：2024/01/02 10:00
棋戦：練習
先手：羽生　善治
*before the game
手数----指手---------消費時間--
   1 ７六歩(77)   ( 0:12/00:00:12)
*good
&bookmark
   2 ３四歩(33)+  ( 0:01/00:00:01)

   3 ２二角成(88) ( 0:00/00:00:12)
   4 同　銀(31)
   5 投了
まで4手で後手の勝ち

変化：2手
   2 ８四歩(83)
   3 no move at all
"""
    record = read_record(save(tmp_path / "game.kif", text.replace("\n", "\r\n"), "cp932"))
    assert record.moves == ("7g7f", "3c3d", "8h2b+", "3a2b")
    assert (record.black, record.white) == ("羽生　善治", "")
    assert record.outcome == Outcome("white", "resignation")
    assert record.comments == {0: "before the game", 1: "good"}


def test_an_illegal_move_in_a_variation_does_not_matter(tmp_path):
    text = "   1 ７六歩(77)\n   2 ３四歩(33)\n変化：2手\n   2 ８四歩(83)\n   3 ９九玉(11)\n"
    assert read_record(save(tmp_path / "game.kifu", text)).moves == ("7g7f", "3c3d")


@pytest.mark.parametrize(
    "moves", ["▲７六歩△３四歩▲２二角成△同　銀", "☗７六歩 ☖３四歩\n☗２二角成\n☖同銀"]
)
def test_ki2_is_read_with_and_without_spaces(tmp_path, moves):
    record = read_record(save(tmp_path / "game.ki2u", moves))
    assert record.moves == ("7g7f", "3c3d", "8h2b+", "3a2b")


@pytest.mark.parametrize("line", ["position startpos moves 7g7f", "startpos moves 7g7f", None])
def test_usi_is_read_with_and_without_position(tmp_path, line):
    record = read_record(save(tmp_path / "game.usi", line or f"{START_SFEN} moves 7g7f\n"))
    assert (record.start_sfen, record.moves) == (START_SFEN, ("7g7f",))


def test_play_after_a_fourfold_repetition_is_read(tmp_path):
    moves = "5i5h 5a5b 5h5i 5b5a " * 3 + "7g7f"
    record = read_record(save(tmp_path / "game.usi", f"startpos moves {moves}"))
    assert len(record.moves) == 13
    assert record.outcome is None


def test_a_record_that_stops_at_mate_has_the_outcome_of_the_rules(tmp_path):
    path = tmp_path / "game.usi"
    assert back(MATE, path).outcome == Outcome("black", "checkmate")


# -- what cannot be read -------------------------------------------------------------------------

ILLEGAL = {
    ".kif": (
        "手合割：平手\n   1 ７六歩(77)\n*c\n   2 ３五歩(33)\n   3 ２六歩(27)\n",
        4,
        "３五歩(33)",
    ),
    ".ki2": ("手合割：平手\n▲７六歩\n△３四歩 ▲５五飛打 △８四歩\n", 3, "▲５五飛打"),
    ".csa": ("V2.2\nPI\n+\n'c\n+7776FU\n-3335FU\n+2726FU\n", 6, "-3335FU"),
    ".usi": ("\nposition startpos moves 7g7f 3c3e 2g2f\n", 2, "3c3e"),
}


@pytest.mark.parametrize("suffix", ILLEGAL)
def test_an_illegal_move_is_named_with_its_line(tmp_path, suffix):
    text, line, move = ILLEGAL[suffix]
    message = error_of(tmp_path / f"game{suffix}", text)
    assert f"line {line}: " in message
    assert move in message
    assert "not a legal move" in message


def test_a_move_that_leaves_the_king_in_check_is_named(tmp_path):
    text = "PI\n+\n+7776FU,T1,-3334FU,T1\n+5968OU\n-2277UM,T9,+9796FU,T2\n"
    message = error_of(tmp_path / "game.csa", text)
    assert "line 5: '+9796FU': not a legal move (move 5)" in message


@pytest.mark.parametrize(
    ("suffix", "text", "line"),
    [
        (".kif", "", 1),
        (".kif", "\nan essay\nabout cats\n", 2),
        (".kif", "手合割：平手\n   1 ７六歩(77)\n   2 ３四歩(3", 3),
        (".kif", "先手：a\n手合割：十九枚落ち\n   1 ７六歩(77)\n", 2),
        (".kif", "手合割：平手\n   1 ７六歩(77)\nwhat is this\n   2 ３四歩(33)\n", 3),
        (".ki2", "hello", 1),
        (".ki2", "▲７六歩 △３四歩\n▲２", 2),
        (".ki2", "▲７六歩\n ▲７九角 後手の持駒：歩\n", 2),
        (".csa", "hello", 1),
        (".csa", "PI\n+\n+7776FU\n-333", 4),
        (".csa", "PI\n+\n+7776FU\n-3334FU+2726FU\n", 4),
        (".csa", "PI\n+\n+7776FU\n+2726FU\n", 4),
        (".csa", "PI\n+\n+7776FU\n%TORYO\n/\nPI\n+\n", 6),
        (".csa", "N+a\nP1-KY\n+\n+7776FU\n", 2),
        (".usi", "", 1),
        (".usi", "startpos moves 7g7f what", 1),
        (".usi", "startpos\nstartpos", 2),
        (".sfen", "sfen 9/9/9 b - 1", 1),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(tmp_path, suffix, text, line):
    assert f", line {line}: " in error_of(tmp_path / f"game{suffix}", text)


def test_bytes_that_are_no_text_are_named_with_their_line(tmp_path):
    path = tmp_path / "game.kif"
    path.write_bytes("手合割：平手\n".encode("cp932") + b"\x81\xff\n")
    with pytest.raises(RecordError, match=r"line 2: .* is neither UTF-8 nor CP932"):
        read_record(path)


def test_an_unknown_suffix_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(RecordError, match=r"\.kif, .*\.csa"):
        read_record(tmp_path / "game.pgn")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_damaged_files_are_read_or_refused_with_a_line(tmp_path, suffix):
    path, damage = tmp_path / f"game{suffix}", random.Random(9)
    write_record(random_record(4, moves=40), path)
    whole = path.read_bytes()
    messages = []
    for _ in range(60):
        at, length = damage.randrange(len(whole)), damage.randrange(1, 12)
        path.write_bytes(whole[:at] + damage.choice([b"", b"x", b"\n"]) + whole[at + length :])
        try:
            read_record(path)
        except RecordError as error:
            messages.append(str(error))
    assert messages
    assert all(", line " in message for message in messages)


# -- writing -------------------------------------------------------------------------------------


def test_a_write_that_fails_keeps_the_old_file_and_leaves_nothing(tmp_path):
    """A file may not grow beyond a limit here: writing fails half-way, as on a full disk."""
    path = tmp_path / "game.kif"
    write_record(GameRecord(black="old"), path)
    code = f"""
import resource, signal
from keisei.shogi.records import GameRecord, write_record
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
write_record(GameRecord(black="new" * 100), {str(path)!r})
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "OSError" in run.stderr
    assert read_record(path).black == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_empty_squares_in_csa_are_written_as_the_standard_says(tmp_path):
    write_record(MATE, tmp_path / "game.csa")
    rows = [row for row in (tmp_path / "game.csa").read_text().splitlines() if row[:2] == "P1"]
    assert rows == ["P1 *  *  *  * -OU *  *  *  * "]


# -- looking at games ----------------------------------------------------------------------------


def shown(path: Path, **options: object) -> str:
    out = io.StringIO()
    run_replay(path, console=Console(file=out, width=100), **options)  # type: ignore[arg-type]
    return out.getvalue()


def test_replay_in_a_pipe_shows_every_position_and_the_outcome(tmp_path):
    write_record(RESIGNED, tmp_path / "game.kif")
    text = shown(tmp_path / "game.kif")
    assert [text.count(f"{n}/2  ") for n in (1, 2)] == [1, 1]
    assert text.count("+----------------------------+") == 2 * 3
    assert "^歩" in text
    assert "V歩" in text
    assert text.rstrip().endswith("white wins by resignation")


def test_replay_shows_the_one_position_that_is_asked_for(tmp_path):
    write_record(RESIGNED, tmp_path / "game.kif")
    text = shown(tmp_path / "game.kif", move=1)
    assert "1/2  ☗ black 7g7f" in text
    assert "2/2" not in text
    with pytest.raises(ValueError, match="moves 0 to 2"):
        shown(tmp_path / "game.kif", move=3)


def test_replay_in_a_terminal_goes_on_and_back_and_quits(tmp_path, monkeypatch):
    write_record(RESIGNED, tmp_path / "game.kif")
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n\nb\nq\n"))
    out = io.StringIO()
    run_replay(
        tmp_path / "game.kif",
        console=Console(file=out, width=100, force_terminal=True, force_interactive=True),
    )
    text = out.getvalue()
    assert [text.count(f"{n}/2") for n in (1, 2)] == [2, 1]


def test_pictures_are_written_for_every_position_and_are_xml(tmp_path):
    write_record(RESIGNED, tmp_path / "game.kif")
    shown(tmp_path / "game.kif", svg_dir=tmp_path / "pictures")
    files = sorted((tmp_path / "pictures").iterdir())
    assert [file.name for file in files] == ["000.svg", "001.svg", "002.svg"]
    for file in files:
        assert ElementTree.parse(file).getroot().tag.endswith("svg")


def test_the_board_is_aligned_and_tells_sides_promotions_and_the_last_move_apart():
    game = random_record(7, moves=120).game()
    text = board_text(game)
    lines = text.plain.splitlines()
    assert {cell_len(line) for line in lines[3:12]} == {34}
    assert sum(line.count("^") + line.count("V") for line in lines[3:12]) == 1
    styles = {str(span.style) for span in text.spans}
    assert {"cyan", "red"} <= {word for style in styles for word in style.split()}
    assert any("reverse" in style for style in styles)


def test_the_piece_that_moved_last_still_shows_whose_it_is():
    game = ShogiGame()
    game.push_usi("7g7f")
    assert board_text(game).plain.splitlines()[8] == "| ・ ・^歩 ・ ・ ・ ・ ・ ・ |六 f"
    game.push_usi("3c3d")
    assert board_text(game).plain.splitlines()[6] == "| ・ ・ ・ ・ ・ ・V歩 ・ ・ |四 d"


def test_hands_and_the_side_to_move_are_shown():
    text = board_text(ShogiGame("4k4/9/9/9/9/9/9/9/4K4 w 2R11Pg 1")).plain.splitlines()
    assert text[0] == "☖ white: 金  (to move)"
    assert text[-1] == "☗ black: 飛二 歩十一"
