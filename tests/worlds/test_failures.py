"""What breaks is said and counted; the others go on."""

import os
import resource
import select
import shutil
import signal
import sys
import threading

import numpy as np
import pytest
import torch

from keisei.processes import line
from keisei.processes.nursery import Nursery
from keisei.worlds import learner_process
from keisei.worlds.double_dqn import DoubleDQN
from tests.processes import PIPE, Process
from tests.worlds.conftest import SMALL, weights_of

ASYNC = "parallel.async_learning=true"


def test_an_agent_whose_network_gives_nan_is_reported_and_the_others_go_on(make, caplog):
    environment = make("copies=2")
    environment.agents[0].model.state["w0"].fill_(torch.nan)
    environment.run_experiment(3)
    assert "a network returns NaN" in caplog.text
    assert "not finite" in caplog.text
    broken, fine = (learner for _, learner in environment.learners)
    assert broken.failures > 0
    assert fine.failures == 0
    assert int(fine.state["steps"]) > 0
    assert all(torch.isfinite(tensor).all() for tensor in fine.state.values())
    assert np.isnan(environment.losses[0])
    assert np.isfinite(environment.losses[1])


def test_a_killed_learner_process_is_reported_and_replaced(make, caplog):
    environment = make(ASYNC)
    environment.run_experiment(1)
    process = environment.groups[0].worker.process
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=30)
    before = weights_of(environment)
    environment.run_experiment(2)
    assert "died; starting another one" in caplog.text
    assert environment.groups[0].worker.process.pid != process.pid
    assert not torch.equal(before[0]["w0"], environment.agents[0].model.state["w0"])


def test_a_learner_process_killed_while_it_trains_costs_one_training(make, caplog):
    environment = make(ASYNC)
    environment.run_experiment(1)
    process = environment.groups[0].worker.process
    os.kill(process.pid, signal.SIGSTOP)  # so that it cannot answer before it is killed
    before = weights_of(environment)
    environment.run_epoch()
    os.kill(process.pid, signal.SIGKILL)
    environment.run_epoch()
    assert environment.failed_trainings == 1
    assert "was killed or crashed; its agents keep their weights" in caplog.text
    environment.finish()
    assert not torch.equal(before[0]["w0"], environment.agents[0].model.state["w0"])


def test_a_hung_learner_process_meets_its_timeout(make, caplog):
    environment = make(ASYNC, "parallel.learner_timeout=0.5")
    environment.run_experiment(1)
    process = environment.groups[0].worker.process
    os.kill(process.pid, signal.SIGSTOP)
    environment.run_experiment(1)
    assert environment.failed_trainings == 1
    assert "did not finish within" in caplog.text
    process.wait(timeout=60)  # not left behind


@pytest.mark.parametrize("how", ["at once", "before they answer"])
def test_if_learner_processes_cannot_start_their_agents_learn_here_and_the_same(
    make, caplog, monkeypatch, how
):
    expected = make(ASYNC, "parallel.use_threads=true")
    expected.run_experiment(5)
    if how == "before they answer":
        monkeypatch.setattr(learner_process, "Welcome", lambda *_: "no welcome")
    else:
        monkeypatch.setattr(sys, "executable", shutil.which("false"))
        monkeypatch.setattr(line, "_nursery", Nursery())  # one that has not been started yet
    environment = make(ASYNC)
    assert len(environment.run_experiment(5)) == 5
    assert environment.failed_trainings == 0
    said = [
        record.message for record in caplog.records if "learn in this process" in record.message
    ]
    assert len(said) == 3 * len(environment.groups)
    assert said[0].endswith("this time")
    assert said[-1].endswith("from now on")
    for state, same in zip(weights_of(environment), weights_of(expected), strict=True):
        assert all(torch.equal(state[name], same[name]) for name in state)


def test_no_room_for_a_learners_memory_is_reported_and_its_agents_learn_here(make, caplog):
    environment = make(ASYNC)
    environment.run_experiment(1)
    environment.groups[0].worker.close()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))  # no descriptor is left
    try:
        environment.run_experiment(1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert "could not be started" in caplog.text
    environment.run_experiment(1)
    assert environment.failed_trainings == 0
    assert environment.groups[0].worker.process is not None


class Stubborn(DoubleDQN):
    """Fails, or hangs, on purpose."""

    release = threading.Event()
    fails = True

    def learn(self, state, batches):
        if self.fails:
            raise RuntimeError("no")
        self.release.wait(60)
        return super().learn(state, batches)


def stubborn(make, *options):
    environment = make(
        ASYNC, "parallel.use_threads=true", "parallel.parallel_training=false", *options
    )
    for team in environment.teams:
        team.algorithm.__class__ = Stubborn
    return environment


def test_a_failed_training_is_counted_and_collection_goes_on(make, caplog):
    environment = stubborn(make)
    results = environment.run_experiment(3)
    assert len(results) == 3
    assert environment.failed_trainings == 3
    assert "RuntimeError: no" in caplog.text


def test_a_hung_learner_thread_meets_its_timeout(make, caplog, monkeypatch):
    monkeypatch.setattr(Stubborn, "fails", False)
    environment = stubborn(make, "parallel.learner_timeout=0.2")
    before = weights_of(environment)
    environment.run_experiment(1)
    Stubborn.release.set()
    assert environment.failed_trainings == 1
    assert torch.equal(before[0]["w0"], environment.agents[0].model.state["w0"])


def test_no_process_is_left_when_an_environment_is_closed(make):
    environment = make(ASYNC)
    environment.run_experiment(1)
    process = environment.groups[0].worker.process
    environment.close()
    process.wait(timeout=60)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="Linux alone tells when a process ends")
def test_a_learner_process_goes_when_its_parent_is_killed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from keisei.worlds import make_environment\n"
        f"environment = make_environment('treasure_hunt', {[*SMALL, ASYNC]})\n"
        "environment.run_experiment(1)\n"
        "print(environment.groups[0].worker.process.pid, flush=True)\n"
        "input()\n"
    )
    parent = Process([], script, stdin=PIPE)
    learner = os.pidfd_open(int(parent.stdout.readline()))
    parent.kill()
    gone, _, _ = select.select([learner], [], [], 60)  # readable when the process has ended
    os.close(learner)
    assert gone
