import re
import subprocess
import sys

import psutil
import pytest

from keisei.shogi import ShogiGame
from keisei.usi.client import UsiClient
from keisei.usi.protocol import Position
from tests.processes import run_keisei

MATE_IN_ONE = "4k4/9/4G4/9/9/9/9/9/4K4 b G 1"
MATED = "4k4/4G4/4G4/9/9/9/9/9/4K4 w - 1"
ENTERED = "+R+R+B+BGGGGK/PPPPPPP2/9/9/9/9/9/9/8k b 2S10P2s2n2l 1"


def starting_with(word, lines):
    return [line for line in lines if line.split()[:1] == [word]]


def test_usi_is_answered_without_pytorch():
    code = (
        "import queue, sys\n"
        "from keisei.usi.engine import Engine\n"
        "lines = queue.SimpleQueue(); said = []\n"
        "for line in ('usi', 'setoption name Nodes value 5', 'position startpos', 'quit'):\n"
        "    lines.put(line)\n"
        "Engine(lines, said.append, 'x.pt').run()\n"
        "assert said[0].startswith('id name Keisei') and said[-1] == 'usiok', said\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_quit_ends_the_engine_while_its_input_stays_open(command):
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        process.stdin.write(b"usi\nquit\n")
        process.stdin.flush()
        assert process.wait(20) == 0
        assert process.stderr.read() == b""
    finally:
        process.kill()
        process.wait(10)
        process.stdin.close()
        process.stderr.close()


def test_a_session_as_guis_hold_it(session):
    said = session(
        "usi",
        "setoption name USI_Ponder value true",
        "setoption name USI_Hash value 64",
        "isready",
        "usinewgame",
        "position startpos moves 7g7f 3c3d",
        "go nodes 40",
        "position startpos moves 7g7f 3c3d 2g2f 8c8d",
        "go nodes 40",
    )
    assert "usiok" in said
    assert "readyok" in said
    info, *_ = starting_with("info", said)
    for word in ("depth", "nodes", "nps", "score", "pv"):
        assert word in info.split()
    best = starting_with("bestmove", said)
    assert len(best) == 2
    assert all(line.split()[2] == "ponder" for line in best)
    game = ShogiGame.from_moves(Position().start_sfen, ["7g7f", "3c3d"])
    for usi in best[0].split()[1::2]:
        game.push_usi(usi)


@pytest.mark.parametrize(
    ("sfen", "answer"), [(MATE_IN_ONE, "G*5b"), (MATED, "resign"), (ENTERED, "win")]
)
def test_mate_resignation_and_declaration(session, sfen, answer):
    said = session("isready", f"position sfen {sfen}", "go nodes 30")
    assert starting_with("bestmove", said) == [f"bestmove {answer}"]


def test_multipv_shows_that_many_lines_the_best_first(session):
    lines = ("isready", "position startpos", "go nodes 60")
    said = session("setoption name MultiPV value 3", *lines, "setoption name MultiPV value 1")
    shown = [line.split() for line in starting_with("info", said)][-3:]
    assert [words[1:3] for words in shown] == [["multipv", "1"], ["multipv", "2"], ["multipv", "3"]]
    first = [words[words.index("pv") + 1] for words in shown]
    assert len(set(first)) == 3
    assert starting_with("bestmove", said) == [f"bestmove {first[0]}"]
    for words in shown:
        game = ShogiGame()
        for usi in words[words.index("pv") + 1 :]:
            game.push_usi(usi)
    assert not any("multipv" in line for line in starting_with("info", session(*lines)))


def test_a_mate_is_shown_as_a_mate_and_found_on_request(session):
    said = session("isready", f"position sfen {MATE_IN_ONE}", "go nodes 9", "go mate 1000")
    assert "score mate 1 " in starting_with("info", said)[0]
    assert starting_with("checkmate", said) == ["checkmate G*5b"]


def test_who_is_mated_is_told_that_there_is_no_mate_to_find(session):
    assert "checkmate nomate" in session("isready", f"position sfen {MATED}", "go mate infinite")


@pytest.mark.parametrize(
    ("sfen", "answer"),
    [
        ("4k4/9/4G4/9/9/9/9/9/9 b G 1", "checkmate notimplemented"),
        ("4k4/9/4G4/9/9/9/9/9/9 b 3R 1", "checkmate timeout"),
    ],
)
def test_problems_with_one_king_are_not_for_us(session, sfen, answer):
    said = session(f"position sfen {sfen}", "go mate 1000", "go nodes 5", "position startpos", "go")
    assert starting_with("checkmate", said) == [answer]
    assert starting_with("bestmove", said)[0] == "bestmove resign"
    assert starting_with("bestmove", said)[1] != "bestmove resign"


def test_stop_ends_an_infinite_search(engine):
    engine.start_thinking(Position(), "infinite")
    engine.send("isready")
    engine.wait_for("readyok", 20)  # answered while thinking
    assert not starting_with("bestmove", engine.passed)
    engine.send("stop")
    assert engine.answer() in ShogiGame().legal_usi()


def test_stop_ends_the_search_that_it_was_sent_for(engine):
    engine.start_thinking(Position(), "nodes 2000")
    engine.start_thinking(Position(moves=("7g7f",)), "infinite")
    engine.send("stop")
    assert engine.answer() in ShogiGame().legal_usi()
    assert " nodes 2000 " in starting_with("info", engine.passed)[-1]
    game = ShogiGame.from_moves(Position().start_sfen, ["7g7f"])
    assert engine.answer() in game.legal_usi()


def test_a_pondering_engine_waits_for_the_move_or_for_stop(engine):
    for ending in ("ponderhit", "stop"):
        engine.start_thinking(Position(moves=("7g7f",)), "ponder nodes 20")
        engine.send("isready")
        engine.wait_for("readyok", 20)
        assert not starting_with("bestmove", engine.passed)
        engine.send(ending)
        assert engine.answer() in ShogiGame.from_moves(Position().start_sfen, ["7g7f"]).legal_usi()


def test_an_answer_without_thinking_waits_for_stop_too(engine):
    engine.start_thinking(Position(MATED), "infinite")
    assert "resign" in engine.wait_for("info", 20)
    engine.send("isready")
    engine.wait_for("readyok", 20)
    assert not starting_with("bestmove", engine.passed)
    engine.send("stop")
    assert engine.answer() == "resign"


@pytest.mark.parametrize("go", ["infinite", "ponder byoyomi 100"])
def test_a_mate_is_shown_before_stop(engine, go):
    engine.start_thinking(Position(MATE_IN_ONE), go)
    assert "score mate 1 " in engine.wait_for("info", 20)
    engine.send("stop")
    assert engine.answer() == "G*5b"


@pytest.mark.parametrize(
    "go",
    [
        "byoyomi 300",
        "btime 1000 wtime 1000 byoyomi 100",
        "movetime 250",
        "",
        "btime 0 wtime 0",
        "btime soon",
        "btime --5",
    ],
)
def test_every_kind_of_clock_brings_a_legal_move(engine, go):
    assert engine.best_move(Position(), go) in ShogiGame().legal_usi()


@pytest.mark.parametrize(
    ("moves", "go"),
    [((), "btime 0 wtime 1000000000"), (("7g7f",), "btime 1000000000 wtime 0")],
)
def test_who_has_no_time_left_answers_while_the_other_has_hours(engine, moves, go):
    engine.start_thinking(Position(moves=moves), go)
    engine.wait_for("bestmove", 15)


def test_the_same_number_of_nodes_gives_the_same_move_and_score(session):
    go = ["usinewgame", "position startpos moves 2g2f", "go nodes 100"]
    one, two = (starting_with("info", session(*go))[-1].split() for _ in range(2))
    assert one[one.index("score") :] == two[two.index("score") :]


@pytest.mark.parametrize(
    "line",
    [
        "position startpos moves 7g7e",
        "position sfen lnsgkgsnl/9/9/9/9/9/9/9/9 b - 1",
        "position",
        "position startpos moves 7g7f 7g7f",
        "position sfen 4k4/9/9/9/9/9/9/9/4K4 b - 65535",
    ],
)
def test_after_a_position_that_cannot_be_no_move_is_made_up(session, line):
    said = session("isready", line, "go nodes 5", "position startpos", "go nodes 5")
    first, second = starting_with("bestmove", said)
    assert first == "bestmove resign"
    assert second != "bestmove resign"


@pytest.mark.parametrize(
    "line",
    [
        "setoption name Nodes value many",
        "setoption name Unheard value 1",
        "setoption",
        "castle",
    ],
)
def test_a_line_that_cannot_be_obeyed_is_named_and_changes_nothing(session, line):
    said = session("isready", line, "position startpos", "go nodes 5")
    assert starting_with("info", said)[0].startswith("info string")
    assert starting_with("bestmove", said)[-1].split()[1] in ShogiGame().legal_usi()


def test_play_goes_on_where_our_rules_end_the_game(session):
    shuffle = "5i5h 5a5b 5h5i 5b5a " * 3
    said = session("isready", f"position startpos moves {shuffle}", "go nodes 20")
    assert starting_with("bestmove", said)[0] != "bestmove resign"


@pytest.mark.parametrize(
    ("go", "answer"), [("nodes 50", "bestmove resign"), ("mate 1000", "checkmate timeout")]
)
def test_an_error_while_thinking_is_said_and_answered(session, go, answer):
    # The longest game that rsshogi can count: the position is fine, but no move can be tried.
    shuffle = ["5i5h", "5a5b", "5h5i", "5b5a"] * 1400
    moves = " ".join(shuffle[: 65_535 - 60_000])
    start = "4k4/9/9/9/9/9/9/9/4K4 b - 60000"
    said = session(f"position sfen {start} moves {moves}", f"go {go}", "position startpos", "go")
    assert answer in said
    assert any(line.startswith("info string") and "overflow" in line for line in said)
    assert starting_with("bestmove", said)[-1].split()[1] in ShogiGame().legal_usi()


def test_a_missing_model_is_one_line_and_exit_code_2(tmp_path):
    done = run_keisei("usi", "--model", tmp_path / "none.pt", input="usi\nisready\n")
    assert done.returncode == 2
    assert "none.pt" in done.stderr
    assert "Traceback" not in done.stderr
    assert "usiok" in done.stdout


def test_the_tree_takes_no_more_memory_than_the_gui_allows():
    with UsiClient([sys.executable, "-m", "keisei", "usi"], {"USI_Hash": "32"}) as engine:
        engine.best_move(Position(), "nodes 200")
        process = psutil.Process(engine._process.pid)
        before = process.memory_info().rss
        engine.best_move(Position(), "nodes 1000000")
        nodes = int(re.search(r" nodes (\d+) ", starting_with("info", engine.passed)[-1])[1])
        assert process.memory_info().rss - before < 32e6 + 10e6
        assert nodes > 3000  # it was used


@pytest.mark.parametrize("model", ["x" * 300, f"{'x' * 300}.pt", "a\x00b", "/dev/zero", "/"])
def test_a_model_that_no_file_can_be_leaves_the_old_one(session, model):
    said = session(f"setoption name Model value {model}", "isready", "go nodes 1")
    assert any("the model is kept as it was" in line for line in said)
    assert starting_with("bestmove", said)


def test_a_model_that_cannot_be_loaded_leaves_the_old_one(session, tmp_path):
    said = session(
        "isready",
        f"setoption name Model value {tmp_path}/none.pt",
        "isready",
        "position startpos",
        "go nodes 5",
    )
    assert said.count("readyok") == 3
    assert any("none.pt" in line for line in said)
    assert starting_with("bestmove", said)


def test_the_end_of_the_input_ends_the_engine_after_what_was_asked_for(checkpoint):
    lines = "usi\nisready\nposition startpos\ngo nodes 50\ngo infinite\n"
    done = run_keisei("usi", "--model", checkpoint, input=lines)
    assert done.returncode == 0
    assert done.stderr == ""
    said = done.stdout.splitlines()
    assert len(starting_with("bestmove", said)) == 2
    assert " nodes 50 " in starting_with("info", said)[0]
