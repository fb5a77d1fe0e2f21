import subprocess
import sys

import pytest

from keisei import __version__
from keisei.shogi import ShogiGame
from keisei.shogi.records import GameRecord, write_record
from tests.processes import run_keisei


def test_the_version_is_shown():
    command = [sys.executable, "-m", "keisei", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == f"keisei {__version__}\n"


def test_help_names_every_command():
    shown = run_keisei("--help").stdout
    for command in ("train", "evaluate", "ladder", "usi", "play", "export", "config", "replay"):
        assert command in shown


@pytest.mark.parametrize(
    "command", ["--help", "config", "worlds list", "worlds config", "worlds train --help"]
)
def test_what_only_prints_does_not_load_pytorch(command):
    code = """if True:
        import runpy, sys
        try:
            runpy.run_module("keisei", run_name="__main__", alter_sys=True)
        finally:
            assert not {"torch", "matplotlib"} & set(sys.modules)
    """
    words = [sys.executable, "-c", code, *command.split()]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout


CTRL_C_WHILE_LOADING = """
import os, runpy, signal, sys

class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores it
sys.meta_path.insert(0, CtrlC())
runpy.run_module("keisei", run_name="__main__")
"""


def test_ctrl_c_while_the_command_is_loaded_shows_no_traceback():
    command = [sys.executable, "-c", CTRL_C_WHILE_LOADING]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.fixture
def game_file(tmp_path):
    game = ShogiGame()
    for usi in ("7g7f", "3c3d", "8h2b+"):
        game.push_usi(usi)
    path = tmp_path / "game.kif"
    write_record(GameRecord.from_game(game, black="A", white="B"), path)
    return path


def test_replay_in_a_pipe_shows_every_position(game_file):
    shown = run_keisei("replay", str(game_file))
    assert shown.returncode == 0
    assert shown.stdout.count("９ ８ ７ ６ ５ ４ ３ ２ １") == 4


def test_replay_draws_a_picture_of_every_position(game_file, tmp_path):
    assert run_keisei("replay", str(game_file), "--svg", str(tmp_path / "out")).returncode == 0
    pictures = sorted((tmp_path / "out").iterdir())
    assert len(pictures) == 4
    assert all("<svg" in picture.read_text() for picture in pictures)


@pytest.mark.parametrize("text", ["", "rubbish", "手合割：平手\n1 ７七歩(77)\n"])
def test_a_file_that_is_no_game_is_one_clear_line_and_exit_code_2(tmp_path, text):
    path = tmp_path / "broken.kif"
    path.write_text(text, encoding="cp932")
    done = run_keisei("replay", str(path))
    assert done.returncode == 2
    assert "broken.kif" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_file_is_named():
    done = run_keisei("replay", "nowhere.kif")
    assert done.returncode == 2
    assert done.stderr == "keisei: nowhere.kif: No such file or directory\n"


def test_a_move_that_the_game_has_not_is_named(game_file):
    done = run_keisei("replay", str(game_file), "--move", "99")
    assert done.returncode == 2
    assert "no move 99" in done.stderr
    assert "Traceback" not in done.stderr
