"""Worlds of the user's own, by `MODULE:CLASS`: real files in the current folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from keisei.cli import app
from keisei.errors import KeiseiError
from keisei.worlds import make_environment
from keisei.worlds.pettingzoo_env import parallel_env
from tests.conftest import HARVEST
from tests.docs.pages import ROOT

TINY = ["copies=2", "epochs=2", "world_settings.max_turns=10", "double_dqn.hidden=[8]"]
OPTIONS = [part for setting in TINY for part in ("-o", setting)]


def keisei(*arguments):
    return CliRunner().invoke(app, ["worlds", *arguments])


def test_every_command_takes_a_world_of_ones_own(harvest_folder):
    trained = keisei("train", "harvest:Harvest", "--name", "a", *OPTIONS)
    assert trained.exit_code == 0, trained.stderr
    assert "keisei worlds watch a --trust" in trained.stdout
    assert "world: harvest:Harvest" in (harvest_folder / "runs/a/config.yaml").read_text()
    assert "epoch 3/3" in keisei("train", "--resume", "a", "--trust", "-o", "epochs=3").stdout
    assert "returns: agent 0" in keisei("watch", "a", "--trust").stdout
    swept = keisei("sweep", "harvest:Harvest", "--seeds", "1", *OPTIONS)
    assert swept.exit_code == 0, swept.stderr
    assert (harvest_folder / "runs/sweep-harvest-Harvest-seed=1/config.yaml").exists()


def test_an_installed_command_and_its_learner_processes_find_it(harvest_folder):
    command = harvest_folder / "bin/keisei"  # as pip writes it: the path begins with its folder
    command.parent.mkdir()
    command.write_text("from keisei.cli import main\n\nmain()\n")
    words = ["worlds", "train", "harvest:Harvest", "-o", "parallel.async_learning=true", *OPTIONS]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, command, *words], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "epoch 2/2" in done.stdout
    assert "crashed" not in done.stderr


@pytest.mark.parametrize("world", ["payload:Hunt", "pettingzoo:payload"])
@pytest.mark.parametrize("command", ["watch", "train --resume", "train -o epochs=3 --resume"])
def test_code_that_only_a_runs_settings_name_is_not_imported(harvest_folder, world, command):
    assert keisei("train", "harvest:Harvest", "--name", "a", *OPTIONS).exit_code == 0
    settings = Path("runs/a/config.yaml")
    settings.write_text(settings.read_text().replace("harvest:Harvest", world))
    Path("payload.py").write_text("open('it_ran', 'w')\n")
    before = settings.read_text()
    done = keisei(*command.split(), "a")
    assert done.exit_code == 2
    assert f"names the world {world}, which is code" in " ".join(done.stderr.split())
    assert "--trust" in done.stderr
    assert not Path("it_ran").exists()
    assert settings.read_text() == before


def test_code_that_the_command_names_needs_no_other_word(harvest_folder):
    assert keisei("train", "harvest:Harvest", "--name", "a", *OPTIONS).exit_code == 0
    done = keisei("train", "--resume", "a", "-o", "epochs=3", "-o", "world=harvest:Harvest")
    assert "epoch 3/3" in done.stdout, done.stderr
    for epochs in ("1", "2"):  # the second goes on with the first
        swept = keisei(
            "sweep", "harvest:Harvest", "--seeds", "1", *OPTIONS, "-o", f"epochs={epochs}"
        )
        assert swept.exit_code == 0, swept.stderr


def test_its_settings_are_described(harvest_folder):
    (harvest_folder / "plain.py").write_text(
        HARVEST.replace(', description="Chance to grow, for each berry nearby."', "")
    )
    shown = keisei("config", "harvest:Harvest").stdout
    assert "world: harvest:Harvest" in shown
    assert "# Chance to grow, for each berry nearby.\n  growth: 0.1" in shown
    shown = keisei("config", "plain:Harvest").stdout
    assert "growth: 0.1" in shown
    assert "None" not in shown.partition("world_settings of")[2]


def test_a_world_in_a_package_is_found_with_what_lies_beside_it(harvest_folder):
    (harvest_folder / "farm").mkdir()
    (harvest_folder / "farm/berries.py").write_text(HARVEST)
    (harvest_folder / "farm/fields.py").write_text("from farm.berries import Harvest as Field\n")
    with make_environment("farm.fields:Field", TINY) as environment:
        assert environment.world.name == "harvest"


def test_it_is_an_environment_of_pettingzoo_by_the_same_name(harvest_folder):
    observations, _ = parallel_env("harvest:Harvest").reset(seed=1)
    assert observations["agent_0"].shape == (3, 9, 9)


CLASS = "from keisei.worlds import World\n\n\nclass Mine(World):\n"


@pytest.mark.parametrize(
    ("world", "text", "said"),
    [
        ("nowhere:Mine", "", "there is no module nowhere in {folder}, and none is installed"),
        ("mine.deep:Mine", "", "there is no module mine.deep in"),
        ("mine.py:Mine", "", "leave out .py: mine:Mine"),
        ("harvest:Mine", "", "there is no class Mine in {folder}/harvest.py; its worlds: Harvest"),
        ("mine:Mine", "x = 1\n", "there is no class Mine in {folder}/mine.py; its worlds: none"),
        ("sys:Mine", "", "there is no class Mine in <module 'sys' (built-in)>; its worlds: none"),
        ("harvest:HarvestSettings", "", "HarvestSettings is not a world: it must be a subclass of"),
        ("harvest:np", "", "np is not a world"),
        ("mine:Mine", CLASS + "    name = 'mine'\n", "mine:Mine has no entities, actions"),
        ("harvest:", "", "'harvest:' is not of the form MODULE:CLASS"),
        (":Harvest", "", "':Harvest' is not of the form MODULE:CLASS"),
        (".harvest:Harvest", "", "is not of the form MODULE:CLASS"),
        ("mine:Mine", "x = 1\nimport nonsuch\n", "{folder}/mine.py, line 2: ModuleNotFoundError: "),
        ("mine:Mine", "x = (\n", "{folder}/mine.py, line 1: SyntaxError: '(' was never closed"),
        ("mine:Mine", CLASS + "    x = 1 / 0\n", "{folder}/mine.py, line 5: ZeroDivisionError: "),
        ("mine:Mine", "import json\njson.loads('')\n", "{folder}/mine.py, line 2: JSONDecodeErr"),
        ("mine:Mine", "import sys\n\nsys.exit(3)\n", "{folder}/mine.py, line 3: SystemExit: 3"),
        ("mine:Mine", "\0", "source code string cannot contain null bytes"),
    ],
)
def test_what_is_wrong_is_one_line_that_says_where(harvest_folder, world, text, said):
    (harvest_folder / "mine.py").write_text(text)
    with pytest.raises(KeiseiError) as refused:
        make_environment(world)
    assert said.format(folder=harvest_folder) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_settings_that_it_does_not_have_are_refused_with_the_command_that_lists_them(
    harvest_folder,
):
    done = keisei("train", "harvest:Harvest", "-o", "world_settings.speed=3")
    assert done.exit_code == 2
    said = " ".join(done.stderr.split())
    assert "speed: there is no such setting (`keisei worlds config harvest:Harvest`" in said
    assert "Traceback" not in said


def test_a_run_whose_world_is_gone_says_where_it_was_looked_for(harvest_folder):
    assert keisei("train", "harvest:Harvest", "--name", "a", *OPTIONS).exit_code == 0
    Path("harvest.py").unlink()
    del sys.modules["harvest"]  # as in the next command's process
    for command in (["watch", "a"], ["train", "--resume", "a", "-o", "epochs=3"]):
        done = keisei(*command, "--trust")
        assert done.exit_code == 2
        assert "there is no module harvest in" in " ".join(done.stderr.split())
