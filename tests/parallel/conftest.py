from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest

from keisei.config_schema import load_config
from keisei.core.policy import evaluate
from keisei.core.ppo_agent import PPOAgent
from keisei.core.precision import acting_network
from keisei.core.rollout import Rollout
from keisei.selfplay.plan import UpdatePlan
from keisei.selfplay.shard import make_shard, new_rollout

SMALL = [
    "model.depth=1",
    "model.width=8",
    "env.move_limit=30",
    "training.minibatch_size=32",
    "training.parallel.num_workers=1",
    "training.parallel.num_envs_per_worker=4",
    "training.parallel.rollout_length=16",
]


def make(*overrides):
    """Settings and an agent; `parallel` settings may be given by their names alone."""
    full = [o if "." in o.partition("=")[0] else f"training.parallel.{o}" for o in overrides]
    config = load_config(overrides=[*SMALL, *full])
    return config, PPOAgent(config, "cpu")


@pytest.fixture
def setup():
    return make


def assert_same_bytes(one: Rollout, two: Rollout) -> None:
    for name, value in vars(one).items():
        other = getattr(two, name)
        if isinstance(value, np.ndarray):
            assert value.dtype == other.dtype, name
            assert value.tobytes() == other.tobytes(), name
        else:
            assert value == other, name


def serial_rounds(config, agent, rounds):
    """What the shards play in this process, one after another."""
    shards = [make_shard(config, i) for i in range(config.training.parallel.num_workers)]
    network = acting_network(config)
    network.load_state_dict(agent.network.state_dict())
    for _ in range(rounds):
        rollouts = []
        for shard in shards:
            rollout = new_rollout(config)
            shard.collect(partial(evaluate, network), rollout, agent.version)
            rollouts.append(rollout)
        yield rollouts


def pids(manager):
    return {i: row["pid"] for i, row in manager.get_statistics()["workers"].items()}


def are_gone(pids, seconds=10):
    """Do all these processes end within so many seconds?"""
    processes = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    return not psutil.wait_procs(processes, timeout=seconds)[1]


def wait_for(manager, is_so, seconds=60):
    """Wait until something is so of the manager, which looks at every change."""
    assert manager._wait_for(is_so, timeout=seconds), "it never came true"


def begin(manager):
    """Let the workers begin what an update wants, before anybody waits for it."""
    supervisor = manager._supervisor
    with supervisor.changed:
        supervisor.plan = UpdatePlan.of(manager.parallel)
        supervisor.communicator.wake()


def files_in_shared_memory():
    return set(Path("/dev/shm").iterdir())
