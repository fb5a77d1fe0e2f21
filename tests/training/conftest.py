import os
import subprocess
import sys

import pytest

# A run of a few seconds: 2,048 moves in updates of 256, of which two thirds end within 40 moves.
TINY = [
    "training.total_timesteps=2048",
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
