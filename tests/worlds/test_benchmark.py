import json

from keisei.benchmarks import worlds


def test_the_benchmark_prints_a_table_and_writes_json(tmp_path, capsys):
    file = tmp_path / "figures.json"
    worlds.run(file, rounds=1, scale=0.1, copies=4)
    figures = json.loads(file.read_text())
    names = ("parallel_to_sequential", "learning_parallel_to_sequential", "async_epoch_time_saved")
    assert all(name in figures for name in names)
    assert figures["machine"]["cores"] >= 1
    assert "measured" in capsys.readouterr().out
