"""Whole runs in a process of their own: trained, stopped, killed, resumed, looked at."""

import math
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from keisei.config_schema import load_config
from keisei.runs.checkpoint import CheckpointStore, load_checkpoint
from keisei.runs.metrics import MetricsReader
from keisei.runs.run import Run
from keisei.settings import to_yaml
from keisei.shogi import ShogiGame
from keisei.shogi.records import read_record
from keisei.training.callbacks import Callback, RecordMetrics
from keisei.training.trainer import Trainer
from keisei.training.training_loop_manager import TrainingLoopManager
from tests.training.conftest import (
    assert_same_state,
    finish,
    options,
    run_python,
    state,
    wait_for,
)


@pytest.fixture
def finished_run(keisei, tmp_path, whole_run):
    """Starts `keisei` where a finished run "a" is."""
    shutil.copytree(whole_run, tmp_path / "runs" / "a")
    return keisei


def test_a_run_leaves_settings_metrics_games_checkpoints_and_a_picture(whole_run):
    run = whole_run
    assert (run / "config.yaml").read_text().count("move_limit: 40") == 1
    assert (run / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert list((run / "tensorboard").iterdir())
    assert len(list((run / "checkpoints").glob("*.pt"))) == 4
    with MetricsReader(run / "metrics.sqlite") as metrics:
        assert [step for step, _ in metrics.series("entropy")] == list(range(256, 2049, 256))
        assert [step for step, _ in metrics.series("wins against random")][:2] == [0, 1024]
        assert max(value for _, value in metrics.series("first_ratio_error")) < 1e-3
        assert max(value for _, value in metrics.series("first_clip_fraction")) == 0
        games = metrics.find_games({})[1]
    assert games
    for game in games:
        record = read_record(run / "games" / game["file"])
        assert len(record.moves) == game["length"]


def test_every_saved_game_has_a_file_of_its_own(tmp_path):
    # Games of 10 moves in rollouts of 32: each game of both shards ends several times an update.
    more = ["training.total_timesteps=256", "env.move_limit=10", "logging.games_per_update=100"]
    config = load_config(overrides=[*options()[1::2], *more, "logging.games_per_evaluation=0"])
    run = Run.create(tmp_path, "a", to_yaml(config))
    assert TrainingLoopManager(Trainer(config, run, [RecordMetrics()])).run()
    with MetricsReader(run.metrics_path) as metrics:
        games = metrics.find_games({})[1]
    assert len(games) >= 2 * 4 * 3
    assert len({game["file"] for game in games}) == len(games) == len(list(run.games_dir.iterdir()))
    for game in games:
        assert len(read_record(run.games_dir / game["file"]).moves) == game["length"]


def test_stopping_and_resuming_gives_the_same_weights_as_never_stopping(
    keisei, tmp_path, whole_run, undisturbed
):
    stopped = keisei("train", "--name", "parts", *options())
    wait_for(stopped, "768/2,048")
    stopped.send_signal(signal.SIGTERM)
    out, _ = finish(stopped)
    assert "--resume parts" in out
    assert 768 <= state(tmp_path / "runs" / "parts")["progress"]["steps"] < 2048
    finish(keisei("train", "--resume", "parts"))
    parts = tmp_path / "runs" / "parts"
    assert_same_state(undisturbed, state(parts))
    for run in (whole_run, parts):
        with MetricsReader(run / "metrics.sqlite") as metrics:
            assert [s for s, _ in metrics.series("entropy")] == list(range(256, 2049, 256))


def test_a_killed_run_resumes_from_its_last_checkpoint_to_the_same_weights(
    keisei, tmp_path, undisturbed
):
    killed = keisei("train", "--name", "killed", *options())
    wait_for(killed, "1,280/2,048")
    killed.kill()
    killed.wait(timeout=60)
    assert state(tmp_path / "runs" / "killed")["progress"]["steps"] == 1024
    finish(keisei("train", "--resume", "killed"))
    assert_same_state(undisturbed, state(tmp_path / "runs" / "killed"))


def test_settings_changed_on_resume_stay_changed(finished_run, tmp_path):
    longer = finished_run("train", "--resume", "a", "-o", "training.total_timesteps=1000000")
    wait_for(longer, "2,304/")
    longer.send_signal(signal.SIGTERM)
    finish(longer)
    again = finished_run("train", "--resume", "a")
    wait_for(again, "/1,000,000")
    again.send_signal(signal.SIGTERM)
    finish(again)
    assert load_config(tmp_path / "runs/a/config.yaml").training.total_timesteps == 1000000


def test_a_thread_that_looks_at_the_run_leaves_its_games_to_the_one_that_plays(tmp_path):
    config = load_config(overrides=options()[1::2])
    trainer = Trainer(config, Run.create(tmp_path, None, to_yaml(config)))
    with ThreadPoolExecutor(1) as display:
        assert display.submit(lambda: len(trainer.current_game().moves)).result(60) == 0
        trainer.update()
        seen = display.submit(lambda: trainer.current_game().sfen()).result(60)
        assert seen != ShogiGame().sfen()
        trainer.load_state_dict(trainer.state_dict())
        assert display.submit(lambda: trainer.current_game().sfen()).result(60) == seen
    trainer.update()


def test_games_that_cannot_be_gone_on_with_are_never_others_in_their_place(tmp_path):
    config = load_config(overrides=options()[1::2])
    trainer = Trainer(config, Run.create(tmp_path, None, to_yaml(config)))
    trainer.update()
    state = trainer.state_dict()
    del state["shards"][1]["streams"]
    trainer.load_state_dict(state)
    for _ in range(2):
        with pytest.raises(KeyError, match="streams"):
            trainer.update()


def test_a_second_signal_exits_at_once(keisei):
    process = keisei("train", "--name", "a", *options("training.total_timesteps=1000000"))
    wait_for(process, "256/")
    # Both are there before the process runs again, so the second meets the first one's handling.
    process.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=60)
    assert process.returncode in (128 + signal.SIGINT, 128 + signal.SIGTERM)


def test_closing_the_terminal_saves_and_stops(keisei, tmp_path):
    rare = ["training.total_timesteps=1000000", "training.checkpoint_interval=1000000"]
    process = keisei("train", "--name", "a", *options(*rare))
    wait_for(process, "256/")
    process.send_signal(signal.SIGHUP)
    out, _ = finish(process)
    assert "--resume a" in out
    assert state(tmp_path / "runs" / "a")["progress"]["steps"] >= 256


@pytest.mark.parametrize(("before", "requested"), [("SIG_DFL", signal.SIGHUP), ("SIG_IGN", None)])
def test_a_terminal_may_hang_up_twice_and_under_nohup_nobody_listens(tmp_path, before, requested):
    code = f"""
import signal
from keisei.runs.stopping import Stopper
signal.signal(signal.SIGHUP, signal.{before})
with Stopper() as stopper:
    for _ in range(2):
        signal.raise_signal(signal.SIGHUP)
    print(stopper.requested)
    assert (signal.getsignal(signal.SIGHUP) == signal.SIG_IGN) == ("{before}" == "SIG_IGN")
"""
    assert finish(run_python(tmp_path, code))[0].strip() == str(requested and int(requested))


class Breaks(Callback):
    """Fails after three updates, as one whose disk is gone."""

    def on_update(self, trainer, finished):
        if trainer.progress.updates == 3:
            raise OSError("the disk is gone")


class BreaksAll(Breaks):
    """Does so where no checkpoint can be written, either."""

    def on_start(self, trainer):
        trainer.run.checkpoints_dir.rmdir()
        trainer.run.checkpoints_dir.write_text("not a folder")


class Spoils(Callback):
    """Leaves weights that are no numbers, and fails."""

    def on_start(self, trainer):
        torch.nn.init.constant_(trainer.agent.network.stem.weight, math.nan)

    def on_evaluation(self, trainer, results):
        raise OSError("the disk is gone")


def trainer_of(config, folder, *callbacks):
    return Trainer(config, Run.create(folder, None, to_yaml(config)), callbacks)


def test_an_error_loses_no_update_that_was_done(tmp_path, caplog):
    config = load_config(overrides=options("training.checkpoint_interval=1000000")[1::2])
    whole, broken = trainer_of(config, tmp_path), trainer_of(config, tmp_path, Breaks())
    with pytest.raises(OSError, match="the disk is gone"):
        TrainingLoopManager(broken).run()
    (path,) = broken.checkpoints.paths()
    assert path.name == "step_000000000768.pt"
    assert path.name in caplog.text
    resumed = Trainer(config, broken.run)
    resumed.load_state_dict(load_checkpoint(path))
    for trainer in (whole, resumed):
        assert TrainingLoopManager(trainer).run()
    assert_same_state(whole.state_dict(), resumed.state_dict())


def test_a_stop_in_the_middle_of_an_update_saves_the_state_from_before_it(tmp_path, monkeypatch):
    config = load_config(overrides=options()[1::2])
    whole, stopped = trainer_of(config, tmp_path), trainer_of(config, tmp_path)
    learn, steps = stopped.agent.descend, []

    def stops(*given):
        steps.append(given)
        if len(steps) == 7:  # an update has four
            signal.raise_signal(signal.SIGINT)
        return learn(*given)

    monkeypatch.setattr(stopped.agent, "descend", stops)
    assert not TrainingLoopManager(stopped).run()
    assert [path.name for path in stopped.checkpoints.paths()] == ["step_000000000256.pt"]
    resumed = Trainer(config, stopped.run)
    resumed.load_state_dict(stopped.checkpoints.latest()[1])
    for trainer in (whole, resumed):
        assert TrainingLoopManager(trainer).run()
    assert_same_state(whole.state_dict(), resumed.state_dict())


def test_an_error_saves_no_weights_that_are_no_numbers(tmp_path):
    config = load_config(overrides=options()[1::2])
    trainer = trainer_of(config, tmp_path, Spoils())
    with pytest.raises(OSError, match="the disk is gone"):
        TrainingLoopManager(trainer).run()
    assert not trainer.checkpoints.paths()


def test_a_state_that_cannot_be_saved_does_not_hide_the_error(tmp_path, caplog):
    config = load_config(overrides=options("training.checkpoint_interval=1000000")[1::2])
    trainer = trainer_of(config, tmp_path, BreaksAll())
    with pytest.raises(OSError, match="the disk is gone"):
        TrainingLoopManager(trainer).run()
    assert "could not be written" in caplog.text


def test_a_corrupt_newest_checkpoint_is_named_and_the_one_before_is_used(finished_run, tmp_path):
    newest = sorted((tmp_path / "runs/a/checkpoints").glob("*.pt"))[-1]
    newest.write_bytes(newest.read_bytes()[:-1000])
    process = finished_run("train", "--resume", "a", "-o", "training.total_timesteps=2560")
    _, err = finish(process)
    assert newest.name in err
    assert state(tmp_path / "runs" / "a")["progress"]["steps"] == 2560


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("model.width=16", "model.width cannot change on resume: it was 8, not 16"),
        ("env.move_limit=2", "env.move_limit cannot be 2"),
        ("env.start_positions=[lance]", "env.start_positions cannot change on resume"),
        ("env.device=cuda:9", "CUDA devices"),
    ],
)
def test_settings_that_do_not_fit_the_checkpoint_are_one_clear_line_and_change_nothing(
    finished_run, tmp_path, override, says
):
    before = (tmp_path / "runs/a/config.yaml").read_bytes()
    more = ["-o", "training.total_timesteps=2304"]
    process = finished_run("train", "--resume", "a", "-o", override, *more)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert says in err
    assert err.count("\n") == 1
    assert (tmp_path / "runs/a/config.yaml").read_bytes() == before


def test_broken_metrics_are_one_clear_line(finished_run, tmp_path):
    (tmp_path / "runs/a/metrics.sqlite").write_bytes(b"no database" * 1000)
    process = finished_run("train", "--resume", "a", "-o", "training.total_timesteps=2304")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "metrics.sqlite: file is not a database" in err
    assert err.count("\n") == 1


def test_two_processes_never_train_one_run(keisei):
    first = keisei("train", "--name", "a", *options("training.total_timesteps=1000000"))
    wait_for(first, "512/")
    second = keisei("train", "--resume", "a")
    _, err = second.communicate(timeout=60)
    assert second.returncode == 2
    assert str(first.pid) in err
    assert err.count("\n") == 1


def test_a_run_that_trains_and_has_no_checkpoint_yet_is_only_said_to_be_in_use(keisei, tmp_path):
    run = Run.create(tmp_path / "runs", "a", to_yaml(load_config(overrides=options()[1::2])))
    with run.lock():
        process = keisei("train", "--resume", "a")
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "in use by another training" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--resume", "nothing"], "nothing"),
        (["--resume", "a", "--name", "b"], "--name"),
        (["--config", "missing.yaml"], "missing.yaml"),
        (["--name", "../a"], "../a"),
        (["-o", "env.seed=100000000000000000000000"], "env.seed"),
        (["-o", "training.parallel.rollout_length=1000000"], "lower training.parallel.rollout_len"),
        (["-o", "env.device=cuda:9"], "CUDA devices"),
        (["-o", "logging.runs_dir=/proc/none"], "/proc/none"),
    ],
)
def test_what_cannot_be_done_is_one_clear_line_and_leaves_no_run(keisei, tmp_path, arguments, says):
    process = keisei("train", *arguments)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert says in err
    assert err.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_a_finished_run_says_how_to_go_on(finished_run, tmp_path):
    process = finished_run("train", "--resume", "a")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "total_timesteps" in err
    finish(finished_run("train", "--resume", "a", "-o", "training.total_timesteps=2304"))
    assert state(tmp_path / "runs" / "a")["progress"]["steps"] == 2304


def test_a_full_disk_is_a_clear_error_and_the_last_good_checkpoint_survives(keisei, new_disk):
    disk = new_disk(megabytes=4)
    wanted = [f"logging.runs_dir={disk}", "logging.tensorboard=false", "model.width=24"]
    endless = ["training.total_timesteps=1000000", "training.checkpoint_interval=256"]
    process = keisei("train", "--name", "a", *options(*wanted, *endless))
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "Traceback" not in err
    assert "space" in err
    assert str(disk) in err
    store = CheckpointStore(disk / "a" / "checkpoints")
    assert store.paths()
    assert all(load_checkpoint(path) for path in store.paths())


def test_wandb_works_offline(keisei, tmp_path):
    run = ["train", "--name", "a", *options("wandb.enabled=true", "training.total_timesteps=512")]
    finish(keisei(*run))
    files = list((tmp_path / "runs" / "a" / "wandb").glob("offline-run-*/*.wandb"))
    assert len(files) == 1
    assert files[0].stat().st_size > 0


def test_a_run_goes_on_where_wandb_is_missing_and_says_what_to_install(tmp_path):
    arguments = ["train", *options("wandb.enabled=true", "training.total_timesteps=256")]
    code = "import sys; sys.modules['wandb'] = None; from keisei.cli import main; main()"
    _, err = finish(run_python(tmp_path, code, *arguments))
    assert "pip install wandb" in err


def test_training_through_the_library_needs_a_few_lines(tmp_path):
    config = load_config(overrides=options()[1::2])
    run = Run.create(tmp_path, None, to_yaml(config))
    trainer = Trainer(config, run)
    assert TrainingLoopManager(trainer).run()
    assert trainer.progress.steps == 2048
    assert trainer.agent.version == 8


@pytest.mark.parametrize("interval", [1, 255, 256, 300, 511, 512])
def test_what_is_due_by_an_interval_does_not_depend_on_where_updates_end(tmp_path, interval):
    config = load_config(overrides=options()[1::2])
    loop = TrainingLoopManager(Trainer(config, Run.create(tmp_path, None, to_yaml(config))))
    last, fired = 0, []
    for step in range(256, 2049, 256):
        loop.trainer.progress.steps = step
        if loop._due(last, interval):
            last = step
            fired.append(step)
    every = -(-interval // 256) * 256
    assert fired == list(range(every, 2049, every))
    assert loop._due(None, interval)
