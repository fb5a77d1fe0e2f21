"""That the benchmarks run and write what they promise; their figures are for people to judge."""

import json
from functools import partial

import pytest

from keisei.benchmarks import collect, env, learn, search


@pytest.mark.parametrize(
    ("run", "keys"),
    [
        (env.run, ["steps_per_s", "bare_steps_per_s", "ratio_to_bare", "bytes_per_stored_step"]),
        (learn.run, ["ratio_to_forward_backward", "update_samples_per_s"]),
        (partial(search.run, nodes=64), ["ratio_one_tree", "ratio_many_trees"]),
        (
            partial(collect.run, seconds=0.2),
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


def test_a_stored_step_takes_at_most_400_bytes():
    assert env.bytes_per_step() <= 400
