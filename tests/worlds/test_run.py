"""Runs in worlds, from the command line: folder, checkpoints, exact resume, watching."""

import json
import os
import shutil
import signal

import pytest
import torch
from typer.testing import CliRunner

from keisei.cli import app
from keisei.errors import KeiseiError
from keisei.runs.checkpoint import CheckpointStore
from keisei.runs.metrics import MetricsReader
from keisei.runs.run import Run
from keisei.worlds.config import load_world_config
from keisei.worlds.display import LiveView
from keisei.worlds.drawing import picture
from keisei.worlds.film import write_film
from keisei.worlds.tag import Tag
from keisei.worlds.training import WorldTraining

TINY = [
    "copies=4",
    "epochs=8",
    "world_settings={height: 9, width: 9, vision: 2, max_turns: 20}",
    "double_dqn.hidden=[16]",
    "double_dqn.batch_size=8",
    "double_dqn.replay_ratio=0.05",
    "double_dqn.memory=400",
    "checkpoint_interval=2",
]


def options(*more):
    return [part for override in (*TINY, *more) for part in ("-o", override)]


@pytest.fixture
def keisei(tmp_path, monkeypatch):
    """Runs `keisei worlds ...` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, ["worlds", *arguments])


def final_weights(folder):
    _, state = CheckpointStore(folder / "checkpoints").latest()
    return [model["state"] for model in state["environment"]["models"]]


@pytest.fixture
def stop_after_4_epochs(monkeypatch):
    """Sends this process SIGTERM, as a user would, when the fourth epoch is over."""
    epoch = WorldTraining._epoch

    def epoch_and_stop(self, *rest):
        epoch(self, *rest)
        if self.environment.epoch == 4:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(WorldTraining, "_epoch", epoch_and_stop)
        yield patch


MIXED = "agents=[{kind: iqn, network: gru, hidden: [8]}, {kind: ppo, network: cnn, hidden: [8]}]"


@pytest.mark.parametrize(
    "mode",
    [[], ["parallel.async_learning=true", "parallel.use_threads=true"], [MIXED]],
    ids=["after acting", "beside acting", "other learners"],
)
def test_a_run_that_was_stopped_and_resumed_ends_with_the_same_weights(
    keisei, tmp_path, mode, stop_after_4_epochs
):
    settings = options(*mode)
    stopped = keisei("train", "treasure_hunt", "--name", "cut", *settings)
    assert "Stopped at epoch 4. Everything is saved" in stopped.stdout
    assert "--resume cut" in stopped.stdout
    stop_after_4_epochs.undo()
    assert keisei("train", "--resume", "cut").exit_code == 0
    assert keisei("train", "treasure_hunt", "--name", "whole", *settings).exit_code == 0
    whole, cut = (final_weights(tmp_path / "runs" / name) for name in ("whole", "cut"))
    for one, other in zip(whole, cut, strict=True):
        for name in one:
            assert torch.equal(one[name], other[name]), name
    with MetricsReader(tmp_path / "runs/cut/metrics.sqlite") as reader:
        assert len(reader.series("return agent_1")) == 8
    assert "returns: agent 0" in keisei("watch", "whole").stdout


def test_settings_changed_on_resume_stay_changed(keisei, stop_after_4_epochs):
    assert keisei("train", "tag", "--name", "a", *options("epochs=2")).exit_code == 0
    stopped = keisei("train", "--resume", "a", "-o", "epochs=6")
    assert "Stopped at epoch 4. Everything is saved" in stopped.stdout
    stop_after_4_epochs.undo()
    assert "epoch 6/6" in keisei("train", "--resume", "a").stdout


def test_shorter_episodes_on_resume_remove_nothing_that_was_measured_or_learned(keisei, tmp_path):
    assert keisei("train", "tag", "--name", "a", *options("epochs=4")).exit_code == 0
    folder = tmp_path / "runs/a"
    before = sorted(path.name for path in (folder / "checkpoints").iterdir())
    with MetricsReader(folder / "metrics.sqlite") as reader:
        returns = reader.series("return")
    more = ("-o", "epochs=6", "-o", "world_settings.max_turns=5", "-o", "keep_checkpoints=9")
    resumed = keisei("train", "--resume", "a", *more)
    assert resumed.exit_code == 0, resumed.stderr
    with MetricsReader(folder / "metrics.sqlite") as reader:
        after = reader.series("return")
        assert reader.meta("total_timesteps") == str(4 * 4 * 20 + 2 * 4 * 5)
    assert after[:4] == returns
    assert [step for step, _ in after] == [80, 160, 240, 320, 340, 360]
    assert set(before) < {path.name for path in (folder / "checkpoints").iterdir()}


def test_agents_that_have_learned_are_not_made_random_on_resume(keisei, tmp_path):
    assert keisei("train", "tag", "--name", "a", *options("epochs=2")).exit_code == 0
    files = {path: path.read_bytes() for path in (tmp_path / "runs/a/checkpoints").iterdir()}
    settings = (tmp_path / "runs/a/config.yaml").read_text()
    for agents in ("[random]", "[double_dqn, random]"):
        refused = keisei("train", "--resume", "a", "-o", "epochs=6", "-o", f"agents={agents}")
        assert refused.exit_code == 2
        assert "would become random ones and forget it all" in " ".join(refused.stderr.split())
    assert {path: path.read_bytes() for path in files} == files
    assert (tmp_path / "runs/a/config.yaml").read_text() == settings


def test_a_run_leaves_curves_a_trace_and_can_be_watched(keisei, tmp_path):
    trained = keisei("train", "tag", "--name", "a", "--trace", "trace.json", *options("epochs=2"))
    assert trained.exit_code == 0, trained.stderr
    assert "epoch 2/2" in trained.stdout
    assert (tmp_path / "runs/a/learning_curve.png").read_bytes()[1:4] == b"PNG"
    events = json.loads((tmp_path / "trace.json").read_text())
    assert {"epoch 0", "train"} <= {event["name"] for event in events}
    assert "returns: agent 0" in keisei("watch", "a").stdout
    assert keisei("watch", "a", "--film", "a.gif").exit_code == 0
    assert (tmp_path / "a.gif").read_bytes()[:3] == b"GIF"


def test_a_run_logs_to_wandb_offline_and_can_have_its_copies_in_two_processes(keisei, tmp_path):
    more = options("epochs=1", "wandb.enabled=true", "parallel.world_workers=2")
    assert keisei("train", "tag", "--name", "a", *more).exit_code == 0
    assert len(list((tmp_path / "runs/a/wandb").glob("offline-run-*/*.wandb"))) == 1


def test_a_film_is_refused_before_the_episode_is_played(keisei, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    for name, said in (
        ("a.mp4", "an MP4 needs the program ffmpeg; install it, or write a .gif"),
        ("a.avi", "must end in .gif or .mp4"),
        ("nowhere/a.gif", "there is no folder nowhere"),
    ):
        done = keisei("watch", "no_run", "--film", name)
        assert done.exit_code == 2
        assert said in " ".join(done.stderr.split())


def frames(count=5):
    world = Tag(seed=1)
    world.reset()
    return [picture(world)] * count


@pytest.mark.skipif(not shutil.which("ffmpeg"), reason="the program ffmpeg writes MP4s")
def test_an_episode_becomes_an_mp4(tmp_path):
    write_film(frames(), tmp_path / "a.mp4")
    assert (tmp_path / "a.mp4").read_bytes()[4:8] == b"ftyp"


@pytest.fixture
def ffmpeg(tmp_path, monkeypatch):
    """Puts a program in ffmpeg's place."""

    def put(script):
        program = tmp_path / "bin" / "ffmpeg"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    return put


def test_ffmpeg_gets_every_pixel_and_the_file_appears_whole(tmp_path, ffmpeg):
    ffmpeg('for name; do :; done; cat > "$name"')  # the last argument is the file
    write_film(frames(), tmp_path / "a.mp4")
    pixels = (tmp_path / "a.mp4").read_bytes()
    assert pixels == b"".join(frame.tobytes() for frame in frames())


def test_what_ffmpeg_complains_about_is_said_and_nothing_is_left(tmp_path, ffmpeg):
    ffmpeg("cat > /dev/null; echo no codec >&2; exit 1")
    with pytest.raises(KeiseiError, match="ffmpeg failed: no codec"):
        write_film(frames(), tmp_path / "a.mp4")
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


def test_a_live_view_that_was_never_started_can_be_stopped(tmp_path, monkeypatch):
    """A run may fail before there is anything to show: its own error must be what is seen."""
    monkeypatch.chdir(tmp_path)
    config = load_world_config("tag", overrides=TINY)
    training = WorldTraining(config, Run.create(tmp_path / "runs", "a", "world: tag\n"))
    LiveView(training).stop()


def test_the_debug_flag_trains_one_agent_after_another_in_one_thread(keisei, tmp_path):
    done = keisei("train", "treasure_hunt", "--debug", "--name", "a", *options("epochs=2"))
    assert done.exit_code == 0, done.stderr
    assert "enabled: false" in (tmp_path / "runs/a/config.yaml").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "nowhere"], "there is no world 'nowhere'"),
        (["train", "tag", "-o", "copys=3"], "copys: there is no such setting"),
        (["train", "tag", "-o", "world_settings.speed=3"], "world tag: speed"),
        (["train"], "name a world"),
        (["watch", "nothing"], "there is no run 'nothing'"),
        (["config", "nowhere"], "there is no world 'nowhere'"),
    ],
)
def test_what_a_user_gets_wrong_is_one_line_and_exit_code_2(keisei, arguments, said):
    done = keisei(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("world", "setting", "said"),
    [
        ("treasure_hunt", "world_settings.start_things=10000", "10000 things do not fit"),
        ("tag", "world_settings.pillars=119", "do not fit on 121 cells"),
        ("tag", "agents=[ppo, ppo, ppo, ppo, random]", "agents: 5 are named, but tag has 4"),
        ("cleanup", "world_settings.river_width=30", "do not fit beside each other"),
        ("cleanup", "world_settings.orchard_width=30", "do not fit beside each other"),
        ("pettingzoo:mpe2.simple_spread_v3", "turn_order=sequential", "turn_order=simultaneous"),
    ],
)
@pytest.mark.parametrize("command", ["train", "sweep"])
def test_settings_that_are_refused_leave_no_run(keisei, tmp_path, command, world, setting, said):
    done = keisei(command, world, "-o", setting, "-o", "epochs=1", "-o", "copies=2")
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_all_worlds_are_listed_and_their_settings_described(keisei):
    shown = keisei("list").stdout
    assert all(
        name in shown
        for name in ("treasure_hunt", "cleanup", "tag", "stag_hunt", "coins", "MODULE:CLASS")
    )
    assert "spawn_chance: 0.7" in keisei("config", "treasure_hunt").stdout
    assert "max_turns: 100" in keisei("config", "pettingzoo:mpe2.simple_spread_v3").stdout
