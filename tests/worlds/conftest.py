import numpy as np
import pytest

from keisei.worlds import make_environment

SMALL = [
    "copies=4",
    "world_settings={height: 9, width: 11, vision: 2, max_turns: 20}",
    *(
        f"{kind}.{setting}"
        for kind in ("double_dqn", "iqn", "ppo")
        for setting in ("hidden=[16]", "replay_ratio=0.05", "channels=[4]", "sequence=4")
    ),
    "double_dqn.batch_size=8",
    "iqn.batch_size=8",
    "ppo.batch_size=16",
    "ppo.sequence=6",
]
# Every learner with every network.
LEARNERS = [
    f"{{kind: {kind}, network: {network}}}"
    for kind in ("double_dqn", "iqn", "ppo")
    for network in ("mlp", "cnn", "gru")
]


@pytest.fixture
def make():
    """Small environments that are closed at the test's end."""
    made = []

    def make_small(*overrides, world="treasure_hunt"):
        made.append(make_environment(world, [*SMALL, *overrides]))
        return made[-1]

    yield make_small
    for environment in made:
        environment.close()


def weights_of(environment):
    """Copies of all that learning changes, by agent."""
    return [
        {name: tensor.clone() for name, tensor in learner.state.items()}
        for _, learner in environment.learners
    ]


def trajectory(environment, turns):
    """What all agents saw, did and got."""
    environment.world.reset()
    record = []
    for _ in range(turns):
        environment.next_turn()
        for agent in environment.agents:
            memory = agent.model.memory
            newest = memory.newest(min(len(memory), 2))  # a cut is a row of its own
            record.append([newest[name].copy() for name in ("state", "action", "reward", "done")])
    return record


def same(first, second):
    return all(
        np.array_equal(a, b)
        for one, other in zip(first, second, strict=True)
        for a, b in zip(one, other, strict=True)
    )
