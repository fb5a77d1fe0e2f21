"""`--runs DIR` is the one name of the folder with all runs; its old names still work."""

import pytest
import typer

from keisei.cli import app
from tests.cli.test_help import commands
from tests.docs.rules import TINY, TINY_WORLD, overrides
from tests.processes import run_keisei

ONE_PROCESS = overrides([*TINY, "training.parallel.enabled=false"])
FOLDER = "2026"  # YAML would read it as a number


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs that are not in ./runs."""
    folder = tmp_path_factory.mktemp("reader")
    run(folder, "train", "--name", "a", "--runs", FOLDER, *ONE_PROCESS)
    world = ["treasure_hunt", "--name", "hunt", *overrides(TINY_WORLD)]
    run(folder, "worlds", "train", *world, "--runs", FOLDER)
    assert {path.name for path in (folder / FOLDER).iterdir()} == {"a", "hunt"}
    assert not (folder / "runs").exists()
    return folder


def run(folder, *words, **how):
    done = run_keisei(*words, cwd=folder, **how)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("train --resume a -o training.total_timesteps=512", "512"),
        ("evaluate a random --games 2", " policy - random"),
        ("rate a --minutes 0", "seconds; the scale"),
        ("ladder a --games 2 --minutes 0.01", "Elo"),
        ("play a --nodes 1", "You are black"),
        ("export a -o a.pt", "a.pt: "),
        ("calibrate a --games 20", "its own estimate"),
        ("usi --model a", "id name"),
        ("worlds watch hunt", "returns: "),
    ],
)
def test_a_run_is_found_by_its_name_in_the_folder_that_runs_names(folder, command, says):
    asked = "usi\nquit\n" if command.startswith("usi") else "quit\n"
    assert says in run(folder, *command.split(), "--runs", FOLDER, input=asked)


@pytest.mark.parametrize(
    "command",
    [
        f"ladder a --games 2 --minutes 0.01 --runs-dir {FOLDER}",
        f"train --resume a -o logging.runs_dir=./{FOLDER} -o training.total_timesteps=768",
        f"worlds train --resume hunt -o runs_dir=./{FOLDER} -o epochs=3",
    ],
)
def test_the_names_that_the_folder_had_before_still_work(folder, command):
    run(folder, *command.split())


def test_help_has_one_name_for_the_folder_wherever_it_is_named():
    for name, command in commands(typer.main.get_command(app)):
        shown = [p for p in command.params if not getattr(p, "hidden", False)]
        named = [p.opts for p in shown if "folder with all runs" in (p.help or "").lower()]
        assert named in ([], [["--runs"]]), name
