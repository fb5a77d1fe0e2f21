import pytest

from keisei.config_schema import load_config
from keisei.core.ppo_agent import PPOAgent

SMALL = [
    "model.depth=1",
    "model.width=8",
    "env.move_limit=30",
    "training.minibatch_size=32",
    "training.parallel.num_envs_per_worker=4",
    "training.parallel.rollout_length=16",
]


def make(*overrides):
    config = load_config(overrides=[*SMALL, *overrides])
    return config, PPOAgent(config, "cpu")


@pytest.fixture
def setup():
    return make
