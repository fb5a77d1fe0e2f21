"""`keisei play` and `keisei export`, as a person at a terminal uses them."""

import os
import pty
import signal

import pytest
from typer.testing import CliRunner

from keisei.cli import app
from keisei.models import SHIPPED_PATH
from keisei.runs.checkpoint import load_checkpoint
from keisei.shogi.records import read_record
from keisei.trained import load_trained
from tests.processes import Process, run_keisei


def play(lines, *arguments, folder=None):
    return run_keisei("play", "--nodes", "8", *arguments, input="\n".join(lines) + "\n", cwd=folder)


def test_the_shipped_network_answers_moves_in_both_notations(tmp_path):
    done = play(["7g7f", "p-2f", "save game.kif", "quit"], folder=tmp_path)
    assert done.returncode == 0
    assert done.stdout.count("Keisei plays ") == 2
    record = read_record(tmp_path / "game.kif")
    assert record.moves[0::2] == ("7g7f", "2g2f")
    assert (record.black, record.white) == ("Human", "Keisei")


def test_whoever_plays_white_is_moved_against_first():
    done = play(["quit"], "--side", "white")
    assert done.stdout.count("Keisei plays ") == 1
    assert "You are white" in done.stdout


def test_with_a_handicap_white_moves_first():
    done = play(["quit"], "--start", "2_pieces")
    assert done.stdout.count("Keisei plays ") == 1


def test_a_move_and_a_resignation_can_be_taken_back(tmp_path):
    lines = ["undo", "7g7f", "2g2f", "undo", "resign", "undo", "save game.usi", "resign", "3g3f"]
    done = play(lines, folder=tmp_path)
    assert "you have no move to take back" in done.stdout
    assert "white wins by resignation" in done.stdout
    assert "the game is over" in done.stdout
    assert len(read_record(tmp_path / "game.usi").moves) == 2


def test_rubbish_is_answered_and_changes_nothing(tmp_path):
    lines = ["9z9z", "", "7g7e", "save", "save game.xyz", "save .", "\N{SNOWMAN}" * 1000, "[/bold]"]
    done = play([*lines, "save game.kif", "save game.kif"], folder=tmp_path)
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.count("is not a legal move here") == 4
    assert "already exists" in done.stdout
    assert read_record(tmp_path / "game.kif").moves == ()


@pytest.mark.parametrize(
    "place", ["nodir/game.kif", "~nouser/game.kif", "a\0b.kif", "x" * 300 + ".kif", "file/game.kif"]
)
def test_a_game_that_cannot_be_saved_there_goes_on_and_is_saved_elsewhere(tmp_path, place):
    (tmp_path / "file").write_text("no folder")
    done = play(["7g7f", f"save {place}", "2g2f", "save game.kif"], folder=tmp_path)
    assert done.returncode == 0
    assert done.stderr == ""
    assert " ".join(done.stdout.split()).count("choose another place") == 1
    assert read_record(tmp_path / "game.kif").moves[0::2] == ("7g7f", "2g2f")


def test_a_file_may_have_a_name_that_cp932_lacks(tmp_path):
    done = play(["7g7f", "save K\u00e4se \N{SNOWMAN}.kif"], folder=tmp_path)
    assert done.returncode == 0
    assert read_record(tmp_path / "K\u00e4se \N{SNOWMAN}.kif").moves[0] == "7g7f"


def test_a_hint_is_one_of_the_moves_that_are_listed():
    shown = " ".join(play(["moves", "hint"]).stdout.split())
    assert "P-7f (7g7f)" in shown
    hint = shown.split("would play ")[1].split(",")[0]
    assert hint in shown.split("would play ")[0]


def test_who_mates_is_told_from_who_is_mated():
    mates = play(["hint"], "--start", "4k4/9/4P4/9/9/9/9/9/4K4 b G 1").stdout
    assert "would play G*5b (G*5b), mates in 1" in mates
    mated = play(["hint"], "--start", "4k4/9/4P4/9/9/9/9/9/4K4 w g 1", "--side", "white").stdout
    assert "mates in" not in mated
    lost = play(["hint"], "--start", "3lkl3/9/3GPG3/9/9/9/9/9/4K4 w - 1", "--side", "white").stdout
    assert "mated in 2" in lost


def test_without_search_it_plays_its_first_idea():
    first, second = (play(["7g7f"], "--nodes", "0").stdout for _ in range(2))
    assert "Keisei plays " in first
    assert first == second


def test_a_game_from_a_position_that_is_over_says_so():
    done = play(["7g7f", "quit"], "--start", "4k4/4G4/4G4/9/9/9/9/9/4K4 w - 1")
    assert "black wins by checkmate" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["nobody"], "nobody"),
        (["nobody.pt"], "nobody.pt"),
        (["--side", "red"], "black, white or either"),
        (["--start", "rubbish"], "startpos"),
    ],
)
def test_a_wrong_argument_is_one_clear_line_and_exit_code_2(arguments, named):
    done = play([], *arguments)
    assert done.returncode == 2
    assert named in done.stderr
    assert "Traceback" not in done.stderr


def test_ctrl_c_leaves_a_terminal_game():
    main, side = pty.openpty()
    game = Process(["play"], stdin=side, stdout=side, stderr=side)
    os.close(side)
    seen = b""
    while b"your move" not in seen:
        seen += os.read(main, 4096)
    game.send_signal(signal.SIGINT)
    assert game.wait(timeout=60) == 0
    os.close(main)


# -- export --------------------------------------------------------------------------------------


def export(file):
    return run_keisei("export", SHIPPED_PATH, "-o", file)


def test_an_exported_network_is_small_and_plays(tmp_path):
    file = tmp_path / "network.pt"
    assert export(file).returncode == 0
    assert file.stat().st_size < 1_000_000
    assert load_trained(file).steps == load_trained(SHIPPED_PATH).steps
    weights = load_checkpoint(file)["agent"]["network"].values()
    assert {str(tensor.dtype) for tensor in weights} == {"torch.float16"}


@pytest.mark.parametrize("name", ["network.txt", "there.pt"])
def test_export_overwrites_nothing_and_knows_two_formats(tmp_path, name):
    (tmp_path / "there.pt").write_text("mine")
    done = export(tmp_path / name)
    assert done.returncode == 2
    assert name in done.stderr
    assert (tmp_path / "there.pt").read_text() == "mine"


def test_a_network_is_not_exported_to_a_folder_that_is_not_there(tmp_path):
    done = CliRunner().invoke(app, ["export", "shipped", "-o", str(tmp_path / "nowhere" / "x.pt")])
    assert done.exit_code == 2
    assert f"{tmp_path / 'nowhere'} is not a folder" in done.stderr
    assert list(tmp_path.iterdir()) == []
