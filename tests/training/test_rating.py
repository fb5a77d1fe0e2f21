"""Checkpoints that are rated while training, by a process of its own."""

import signal
import time
from pathlib import Path

import psutil
import pytest

from tests.training.conftest import assert_same_state, finish, name_of, options, state, wait_for

SAID = "checkpoints are rated in the background"
RATED = options("evaluation.rate=true")
ENDLESS = options("evaluation.rate=true", "training.total_timesteps=1000000000")


def rater_of(process):
    """The process that rates a training."""
    end = time.monotonic() + 60
    while time.monotonic() < end:  # it takes its name a moment after it has begun
        for child in psutil.Process(process.pid).children(recursive=True):
            if name_of(child.pid).startswith("keisei-rating"):
                return child
    raise AssertionError("nothing rates it")


@pytest.fixture
def training(keisei):
    """A training that goes on, and the process that rates it."""
    process = keisei("train", "--name", "a", *ENDLESS)
    wait_for(process, SAID)
    return process, rater_of(process)


def test_a_rated_run_says_so_and_is_the_same_bit_for_bit(keisei, tmp_path, undisturbed):
    out, _ = finish(keisei("train", "--name", "a", *RATED))
    assert out.count(SAID) == 1
    assert_same_state(state(tmp_path / "runs" / "a"), undisturbed)


def test_the_rating_has_the_lowest_priority_and_ends_with_a_training_that_is_stopped(
    training, tmp_path
):
    process, rater = training
    while not (tmp_path / "runs/a/ladder.log").exists():  # it is begun when the priority is set
        wait_for(process, "step ")
    assert rater.nice() == 19
    group = Path(f"/proc/{rater.pid}/autogroup")  # where the system groups by sessions
    assert not group.exists() or "nice 19" in group.read_text()
    process.send_signal(signal.SIGINT)
    wait_for(process, "Stopped at step")
    process.wait()
    assert not rater.is_running()


def test_the_rating_ends_with_a_training_that_is_killed(training):
    process, rater = training
    process.kill()
    rater.wait(timeout=60)


def test_a_training_goes_on_when_its_rating_dies_and_says_so(training):
    process, rater = training
    rater.kill()
    said = next(line for line in process.stderr if "no longer rated" in line)
    assert "SIGKILL" in said
    assert "ladder.log" in said
    wait_for(process, "step 512/")
    process.send_signal(signal.SIGINT)
    wait_for(process, "Stopped at step")
