import os
import subprocess
import sys

import pytest

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


@pytest.fixture
def keisei(tmp_path):
    """Starts `keisei` in an empty folder, and ends at the latest with the test."""
    started = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "keisei", *arguments],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=60)


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


def run_python(code, *arguments):
    """Start Python with this code, and with pipes to all its streams."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
