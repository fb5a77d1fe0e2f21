"""Whole runs whose moves are played by worker processes."""

import json
import os
import signal
import subprocess
import sys

import pytest

from keisei.config_schema import load_config
from keisei.processes import line
from keisei.processes.nursery import Nursery
from keisei.runs.checkpoint import load_checkpoint
from keisei.runs.metrics import MetricsReader
from keisei.runs.run import Run
from keisei.settings import to_yaml
from keisei.training.callbacks import Callback
from keisei.training.trainer import Trainer
from keisei.training.training_loop_manager import TrainingLoopManager
from tests.training.conftest import (
    assert_same,
    assert_same_state,
    finish,
    name_of,
    options,
    run_python,
    state,
    wait_for,
    workers_of,
)

WORKERS = "training.parallel.enabled=true"


class StopsAfter(Callback):
    """Stops the run after so many updates, as Ctrl-C does."""

    def __init__(self, updates):
        self.updates = updates

    def on_update(self, trainer, finished):
        if trainer.progress.updates == self.updates:
            signal.raise_signal(signal.SIGINT)


def test_training_with_workers_gives_the_same_weights_as_in_one_process(
    keisei, tmp_path, undisturbed
):
    finish(keisei("train", "--name", "many", *options(WORKERS)))
    assert_same_state(undisturbed, state(tmp_path / "runs" / "many"))
    with MetricsReader(tmp_path / "runs" / "many" / "metrics.sqlite") as metrics:
        assert max(value for _, value in metrics.series("first_ratio_error")) < 1e-3
        assert max(value for _, value in metrics.series("first_clip_fraction")) == 0
        assert 0 < metrics.latest()["workers_busy"] < 1
        assert metrics.latest()["memory_mb"] > 100


@pytest.mark.parametrize(
    "setting",
    [
        "training.parallel.opponent_shares={random: 0.5}",
        "training.parallel.episodes_per_worker=5",
        "env.random_moves=6",
    ],
)
def test_workers_and_one_process_learn_from_the_same_rollouts_whatever_an_update_wants(
    tmp_path, setting, one_thread
):
    seen = []
    for enabled in ("false", "true"):
        wanted = [setting, f"training.parallel.enabled={enabled}"]
        config = load_config(overrides=options(*wanted)[1::2])
        trainer = Trainer(config, Run.create(tmp_path, enabled, to_yaml(config)))
        trainer.start_workers()
        for _ in range(3):
            trainer.update()
        scores = trainer.progress.metrics.get("score against random opponents")
        seen.append((trainer.state_dict(), trainer.progress.games, scores))
        trainer.stop_workers()
    (serial, *counted), (workers, *counted_there) = seen
    assert_same_state(serial, workers)
    assert counted == counted_there
    assert (counted[1] is not None) == ("opponent" in setting)
    if "episodes" in setting:
        assert counted[0] >= 3 * 2 * 5


def test_with_older_weights_in_play_serial_workers_and_resumed_workers_end_the_same(
    tmp_path, one_thread
):
    ends, kinds = [], {"serial": "false", "workers": "true", "resumed": "true", "mixed": "true"}
    for kind, enabled in kinds.items():
        wanted = [f"training.parallel.enabled={enabled}", "training.parallel.model_sync_interval=3"]
        wanted += ["env.random_moves=6"]
        config = load_config(overrides=options(*wanted)[1::2])
        trainer = Trainer(config, Run.create(tmp_path, kind, to_yaml(config)))
        trainer.start_workers()
        for update in range(5):
            if update in (2, 4) and kind == "resumed":
                path = trainer.checkpoints.save(update, trainer.state_dict())
                trainer.stop_workers()
                trainer = Trainer(config, trainer.run)
                trainer.load_state_dict(load_checkpoint(path))
                trainer.start_workers()
            if update in (2, 4) and kind == "mixed":
                trainer.stop_workers() if update == 2 else trainer.start_workers()
            trainer.update()
            assert trainer.manager.published == (0, 0, 0, 3, 3)[update]
        ends.append(trainer.state_dict())
        trainer.stop_workers()
    for end in ends[1:]:
        assert_same_state(ends[0], end)


def test_a_training_is_the_same_bit_for_bit_when_workers_are_killed(keisei, tmp_path, undisturbed):
    process = keisei("train", "--name", "a", *options(WORKERS))
    wait_for(process, "512/2,048")
    first = workers_of(process)
    assert len(first) == 2
    for pid in first:
        os.kill(pid, signal.SIGKILL)
    wait_for(process, "1,024/2,048")
    second = workers_of(process)
    os.kill(second[0], signal.SIGKILL)
    _, err = finish(process)
    assert "SIGKILL" in err
    assert_same_state(undisturbed, state(tmp_path / "runs" / "a"))
    assert not any(name_of(pid).startswith("keisei-worker") for pid in first + second)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_training_with_workers_resumes_bit_for_bit(keisei, tmp_path, undisturbed, how):
    process = keisei("train", "--name", "a", *options(WORKERS))
    wait_for(process, "1,024/2,048")
    process.send_signal(how)
    process.communicate(timeout=60)
    finish(keisei("train", "--resume", "a"))
    assert_same_state(undisturbed, state(tmp_path / "runs" / "a"))


def test_training_goes_on_in_one_process_when_workers_keep_dying_and_with_them_when_asked(
    keisei, tmp_path, undisturbed
):
    process = keisei("train", "--name", "a", *options(WORKERS, "training.parallel.max_restarts=0"))
    wait_for(process, "512/2,048")
    os.kill(workers_of(process)[0], signal.SIGKILL)
    wait_for(process, "1,024/2,048")
    assert not workers_of(process)
    process.send_signal(signal.SIGUSR1)
    wait_for(process, "1,536/2,048")
    assert len(workers_of(process)) == 2
    _, err = finish(process)
    assert "training goes on in one process" in err
    assert f"kill -USR1 {process.pid}" in err
    assert_same_state(undisturbed, state(tmp_path / "runs" / "a"))


def test_where_workers_cannot_start_training_goes_on_in_one_process_and_says_why(
    tmp_path, undisturbed
):
    settings = options(WORKERS, "training.parallel.inference=central")  # needs 30 descriptors
    code = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))\n"
    code += "from keisei.cli import main; main()"
    _, err = finish(run_python(tmp_path, code, "train", "--name", "a", *settings))
    assert "Too many open files" in err
    assert "training goes on in one process" in err
    assert_same(undisturbed["agent"], state(tmp_path / "runs" / "a")["agent"])


def test_a_resumed_run_whose_only_worker_cannot_start_goes_on_with_its_games(
    tmp_path, monkeypatch, one_thread
):
    alone = [WORKERS, "training.parallel.num_workers=1"]
    config = load_config(overrides=options(*alone)[1::2])
    whole = Trainer(config, Run.create(tmp_path, "whole", to_yaml(config)))
    resumed = Trainer(config, Run.create(tmp_path, "resumed", to_yaml(config)))
    whole.update()
    resumed.load_state_dict(whole.state_dict())
    (tmp_path / "rsshogi.py").write_text("raise ImportError('broken on purpose')")
    with monkeypatch.context() as patched:
        patched.syspath_prepend(tmp_path)
        patched.setattr(line, "_nursery", Nursery())
        resumed.start_workers()
    assert not resumed.manager.is_running
    for trainer in (whole, resumed):
        trainer.update()
    assert_same_state(whole.state_dict(), resumed.state_dict())


def test_a_full_dev_shm_does_not_matter(tmp_path, undisturbed):
    fill = "mount -t tmpfs -o size=4k tmpfs /dev/shm && head -c 4096 /dev/zero > /dev/shm/full"
    train = [sys.executable, "-m", "keisei", "train", "--name", "a", *options(WORKERS)]
    command = ["unshare", "--mount", "sh", "-c", f'{fill} && exec "$@"', "sh", *train]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200
        )
    except OSError as error:
        pytest.skip(f"a file system of its own is not to be had: {error}")
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("only root may mount a file system")
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert_same_state(undisturbed, state(tmp_path / "runs" / "a"))


def test_async_training_learns_while_workers_play_and_records_how_far_they_lag(keisei, tmp_path):
    settings = [WORKERS, "training.parallel.mode=async", "training.total_timesteps=4096"]
    finish(keisei("train", "--name", "a", *options(*settings)))
    assert state(tmp_path / "runs" / "a")["progress"]["steps"] >= 4096
    with MetricsReader(tmp_path / "runs" / "a" / "metrics.sqlite") as metrics:
        lags = [value for _, value in metrics.series("lag")]
        assert 0 < max(lags) <= 4
        assert metrics.latest()["restarts"] == 0


def test_training_against_random_and_past_opponents_records_the_score(keisei, tmp_path):
    shares = "training.parallel.opponent_shares={past: 0.5, random: 0.5}"
    finish(keisei("train", "--name", "a", *options(WORKERS, shares)))
    with MetricsReader(tmp_path / "runs" / "a" / "metrics.sqlite") as metrics:
        names = metrics.names()
        assert "score against random opponents" in names
        assert "score against past opponents" in names


def test_against_past_opponents_a_stopped_training_resumes_bit_for_bit(tmp_path):
    often = ["training.checkpoint_interval=256", "training.keep_checkpoints=2"]
    past = "training.parallel.opponent_shares={past: 1.0}"
    config = load_config(overrides=options(*often, past, "evaluation.interval=4096")[1::2])
    whole = Trainer(config, Run.create(tmp_path, "whole", to_yaml(config)))
    assert TrainingLoopManager(whole).run()
    parts = Run.create(tmp_path, "parts", to_yaml(config))
    for stop_after in (1, 4, 5, 6, 99):
        trainer = Trainer(config, parts, [StopsAfter(stop_after)])
        if trainer.checkpoints.paths():
            trainer.load_state_dict(trainer.checkpoints.latest()[1])
        finished = TrainingLoopManager(trainer).run()
    assert finished
    assert_same_state(whole.state_dict(), trainer.state_dict())
    steps = [{p.name for p in one.checkpoints.paths()} for one in (whole, trainer)]
    assert steps[0] <= steps[1]


def test_a_trace_shows_what_the_learner_and_every_worker_did_when(keisei, tmp_path):
    process = keisei("train", "--trace", "trace.json", "--name", "a", *options(WORKERS))
    wait_for(process, "1,024/2,048")
    started = (tmp_path / "trace.json").read_text()
    assert json.loads(started.rstrip(",\n") + "]")  # readable at any moment
    finish(process)
    events = json.loads((tmp_path / "trace.json").read_text())
    rows = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    seen = {(rows[e["tid"]], e["name"]) for e in events if e["ph"] == "X"}
    assert seen >= {
        ("learner", "wait for rollouts"),
        ("learner", "learn"),
        ("learner", "evaluate"),
        ("learner", "save"),
        ("keisei-worker-0", "busy"),
        ("keisei-worker-1", "waiting"),
        ("keisei-worker-1", "syncing"),
    }
    for event in events:
        assert event["ph"] == "M" or event["ts"] > 0


def test_stopping_a_training_with_workers_saves_and_leaves_none_behind(keisei, tmp_path):
    settings = ["training.parallel.enabled=true", "training.total_timesteps=1000000"]
    process = keisei("train", "--name", "a", *options(*settings))
    wait_for(process, "512/")
    workers = workers_of(process)
    process.send_signal(signal.SIGINT)
    out, _ = finish(process)
    assert "--resume a" in out
    assert state(tmp_path / "runs" / "a")["progress"]["steps"] >= 512
    assert not any(name_of(pid).startswith("keisei-worker") for pid in workers)
