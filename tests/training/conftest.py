import contextlib
import subprocess
from pathlib import Path

import psutil
import pytest
import torch

from keisei.core import runtime
from keisei.runs.checkpoint import CheckpointStore
from tests.processes import PIPE, Process, keisei_in, run_keisei

# A run of a few seconds: 2,048 moves in updates of 256, of which two thirds end within 40 moves.
TINY = [
    "training.total_timesteps=2048",
    "training.parallel.enabled=false",
    "training.parallel.num_workers=2",
    "training.parallel.num_envs_per_worker=4",
    "training.parallel.rollout_length=32",
    "training.minibatch_size=64",
    "training.checkpoint_interval=512",
    "model.depth=1",
    "model.width=8",
    "env.move_limit=40",
    "evaluation.games=4",
    "evaluation.final_games=4",
    "evaluation.interval=1024",
]


def options(*overrides):
    return [part for override in (*TINY, *overrides) for part in ("-o", override)]


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory):
    """The folder of a run that nobody disturbed, in one process; to look at, or to copy."""
    folder = tmp_path_factory.mktemp("whole")
    done = run_keisei("train", "--name", "whole", *options(), cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "runs" / "whole"


@pytest.fixture(scope="session")
def undisturbed(whole_run):
    """The state in which that run ended."""
    return state(whole_run)


@pytest.fixture
def keisei(tmp_path):
    """Starts `keisei` in an empty folder, and ends at the latest with the test."""
    with keisei_in(tmp_path) as start:
        yield start


@pytest.fixture
def one_thread():
    """PyTorch with one thread here, as workers have: with more, sums differ in their last bits."""
    with runtime.one_thread():
        yield


@pytest.fixture
def new_disk(tmp_path):
    """Mounts a small file system of so many megabytes, where this user may mount one."""
    mounted = []

    def mount(megabytes):
        folder = tmp_path / "disk"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=30)
        except OSError as error:
            pytest.skip(f"a small disk cannot be mounted: {error}")
        if done.returncode:
            pytest.skip("only root may mount a small disk")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True, timeout=30)


@pytest.fixture
def tiny_disk(new_disk):
    return new_disk(megabytes=1)


def run_python(folder, code, *arguments):
    """Start Python with this code, which is kept in the folder, and pipes to all its streams."""
    script = folder / "script.py"
    script.write_text(code)
    return Process(arguments, script, cwd=folder, stdin=PIPE)


def finish(process):
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    return out, err


def wait_for(process, text):
    """Read the process's output up to the line with `text`."""
    for line in process.stdout:
        if text in line:
            return line
    raise AssertionError(f"{text!r} never came; stderr: {process.stderr.read()}")


def state(run: Path):
    return CheckpointStore(run / "checkpoints").latest()[1]


def assert_same_state(one, two):
    """Weights, optimiser, random state, games and counters: everything but the time it took."""
    assert_same(one["agent"], two["agent"])
    assert_same(one["shards"], two["shards"])
    timed = {"seconds", "metrics"}
    for name in set(one["progress"]) - timed:
        assert one["progress"][name] == two["progress"][name], name


def assert_same(one, two, where="state"):
    if isinstance(one, dict):
        assert one.keys() == two.keys(), where
        for key in one:
            assert_same(one[key], two[key], f"{where}.{key}")
    elif isinstance(one, list | tuple):
        assert len(one) == len(two), where
        for i, pair in enumerate(zip(one, two, strict=True)):
            assert_same(*pair, f"{where}[{i}]")
    elif isinstance(one, torch.Tensor):
        assert torch.equal(one, two), where
    elif hasattr(one, "dtype"):
        assert (one == two).all(), where
    else:
        assert one == two, where


def workers_of(process):
    """The worker processes that a training has started."""
    children = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
    return [pid for pid in children if name_of(pid).startswith("keisei-worker")]


def name_of(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text()
    return ""
