"""That the benchmarks run and write what they promise; their figures are for people to judge."""

import json
import os
from functools import partial

import numpy as np
import pytest

from keisei.benchmarks import collect, env, growth, learn, search
from keisei.core.learner import make_learner
from keisei.processes.shared_memory import SharedArrays
from keisei.training.parallel.slots import slots_needed


@pytest.mark.parametrize(
    ("run", "keys"),
    [
        (env.run, ["steps_per_s", "bare_steps_per_s", "ratio_to_bare", "bytes_per_stored_step"]),
        (partial(learn.run, length=4), ["ratio_to_forward_backward", "update_samples_per_s"]),
        (partial(search.run, nodes=64), ["ratio_one_tree", "ratio_many_trees"]),
        (
            partial(collect.run, seconds=0.2, games=4),
            [
                "ratio_to_forward",
                "scaling_2_workers",
                "ratio_to_single_game",
                "training_parallel_to_serial",
                "weights_ms",
            ],
        ),
    ],
    ids=["env", "learn", "search", "collect"],
)
def test_a_benchmark_prints_a_table_and_writes_json(run, keys, tmp_path, capsys):
    file = tmp_path / "figures.json"
    run(file, rounds=1)
    figures = json.loads(file.read_text())
    for key in keys:
        assert key in figures
    assert figures["machine"]["cores"] >= 1
    assert "measured" in capsys.readouterr().out


def test_collecting_goes_on_when_workers_have_filled_all_their_slots():
    config = collect.settings("tiny", 1, length=1)
    capacity = slots_needed(config.training.parallel) * collect.GAMES
    steps, _ = collect.collecting(config, make_learner(config), seconds=2.0)()
    assert steps > capacity


def test_a_stored_step_takes_at_most_400_bytes():
    assert env.bytes_per_step() <= 400


def test_growth_measures_every_size_and_draws_a_picture(tmp_path, capsys):
    sizes = {"games": (1, 4), "workers": (1, 2), "presets": ("tiny",), "minibatches": (1024,)}
    file, picture = tmp_path / "figures.json", tmp_path / "growth.png"
    growth.run(file, picture, rounds=1, seconds=0.1, **sizes)
    figures = json.loads(file.read_text())
    assert [point["games"] for point in figures["games"]] == [1, 4]
    assert [point["workers"] for point in figures["workers"]] == [1, 2]
    assert [point["preset"] for point in figures["network"]] == ["tiny"]
    assert [point["minibatch"] for point in figures["minibatch"]] == [1024]
    for point in figures["games"] + figures["workers"]:
        assert point["steps_per_s"] > 0
        assert point["worker_bytes"] > 2**20
    assert figures["memory"]["slot_bytes_per_game"] > 0
    assert figures["other_load"] >= 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    shown = capsys.readouterr()
    assert "games per worker: 4" in shown.out
    assert "collect: workers 2, games each 4" in shown.err  # the user sees that it goes on


def test_the_slots_of_a_worker_are_not_counted_as_its_own_memory():
    slots = SharedArrays({"bytes": ((2**26,), np.uint8)})
    before = growth.unique_bytes(os.getpid())
    slots["bytes"][:] = 1
    assert growth.unique_bytes(os.getpid()) - before < 2**25
    slots.close()
