"""Every script and every example runs: small here, but from its first line to its last."""

import json
import shutil
from pathlib import Path

import pytest

from tests.processes import ROOT, Process, run_keisei
from tests.training.conftest import TINY

SMALL = [part for setting in TINY for part in ("-o", setting) if "enabled" not in setting]
# By file: what it is started with, and a word of what it says.
RUNS = {
    "scripts/benchmark_parallel.py": (["--workers=1", "--games=4", "--seconds=0.1"], "moves/s"),
    "scripts/make_openings.py": (["1"], "# 80 openings of 8 moves"),
    "scripts/make_yardstick.py": (["draw", "yardstick.png"], ""),
    "scripts/measure_watchers.py": (
        ["--watchers=2", "--minutes=0", "--seconds=0.5", *SMALL[2:]],  # it ends by itself
        "with 2 browsers / without",
    ),
    "scripts/measure_variety.py": (["7", "--games=2", "--pairs=1"], "Elo"),
    "scripts/rate_levels.py": (["--minutes=0.02", "-o", "levels.json"], "seconds"),
    "scripts/mutants.py": (["27 points"], "1 of 1 faults noticed (100%)"),
    "scripts/profile_training.py": (["--mode=parallel", "--workers=2", *SMALL], "collect"),
    "scripts/rate_again.py": (["random", "--times=2", "--width=2000"], "of 1 differences are less"),
    "scripts/soak_worlds.py": (
        ["--minutes=0", "--agents=4", "--copies=2", "--most=1000"],
        "last quarter",
    ),
    "examples/analyse_position.py": ([], "black wins with "),
    "examples/gymnasium_agent.py": ([], "reward -1"),
    "examples/onnx_network.py": ([], "moves: "),
    "examples/own_player.py": ([], "shipped policy - promoter: "),
    "examples/parallel_training_example.py": ([], "worker 1: "),
    "examples/train_and_plot.py": (TINY, "see win_rate.png"),
}
ELSEWHERE = {
    "scripts/docs_hooks.py": "tests/docs/test_site.py",
    "scripts/docs_doctests.py": "tests/docs/test_site.py",
    "scripts/draw_live_view.py": "below, because it needs a run",
    "scripts/test_parallel_stability.py": "below, because it says more",
    "examples/reference.py": "tests/training/test_reference.py",
    "examples/first_steps.ipynb": "tests/docs/test_notebook.py",
}


def test_every_script_and_example_is_run_here_or_elsewhere():
    files = [*ROOT.glob("scripts/*.py"), *ROOT.glob("examples/*.*")]
    assert {str(file.relative_to(ROOT)) for file in files} == {*RUNS, *ELSEWHERE}


def run(script, arguments, folder):
    process = Process(arguments, script=ROOT / script, cwd=folder)
    try:
        out, err = process.communicate(timeout=280)
    finally:
        process.kill()
    assert process.returncode == 0, f"{out}\n{err}"
    return out


@pytest.mark.parametrize("script", RUNS)
def test_a_script_runs_from_end_to_end(script, tmp_path):
    arguments, says = RUNS[script]
    if script == "scripts/make_openings.py" and not shutil.which("/usr/games/fairy-stockfish"):
        pytest.skip("it needs Fairy-Stockfish")
    assert says in run(script, arguments, tmp_path)


def test_a_storm_of_kills_ends_with_the_weights_of_the_undisturbed_run(tmp_path):
    arguments = ["--kills=4", "--json=report.json"]
    run("scripts/test_parallel_stability.py", arguments, tmp_path)
    sync, both = json.loads((tmp_path / "report.json").read_text())
    assert (sync["mode"], both["mode"]) == ("sync", "async")
    assert sync["kills"] == both["kills"] == 4
    assert not sync["problems"] + both["problems"]


def test_the_live_view_of_a_run_is_drawn(tmp_path):
    assert run_keisei("train", "--name", "a", *SMALL, cwd=tmp_path).returncode == 0
    run("scripts/draw_live_view.py", ["runs/a", "view.svg"], tmp_path)
    assert Path(tmp_path, "view.svg").read_text(encoding="utf-8").startswith("<svg")
