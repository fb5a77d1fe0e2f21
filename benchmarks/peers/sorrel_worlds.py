"""Sorrel's treasure hunt: turns per processor second, acting and with learning.

Needs a clone of Sorrel in PYTHONPATH, which is not on PyPI, and what it imports.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from measure import pin_to_one_core, publish

pin_to_one_core()

import torch  # noqa: E402
from sorrel.examples.treasurehunt.entities import EmptyEntity  # noqa: E402
from sorrel.examples.treasurehunt.env import TreasurehuntEnv  # noqa: E402
from sorrel.examples.treasurehunt.world import TreasurehuntWorld  # noqa: E402

TURNS = 100


def settings(radius: int) -> dict[str, dict[str, object]]:
    """Those of its example: agents that see two cells far, as colours; further, as planes."""
    spec = "rgb" if radius == 2 else "onehot"
    return {
        "experiment": {"epochs": 1, "max_turns": TURNS, "record_period": 10**9},
        "model": {"agent_vision_radius": radius, "observation_spec": spec, "num_agents": 2},
        "world": {
            "height": 21,
            "width": 21,
            "gem_value": 10,
            "food_value": 5,
            "bone_value": -10,
            "spawn_prob": 0.005,
        },
    }


def epoch(env: TreasurehuntEnv) -> None:
    """An episode, without learning."""
    env.reset()
    for agent in env.agents:
        agent.model.start_epoch_action(epoch=0)
    for _ in range(TURNS):
        env.take_turn()
    for agent in env.agents:
        agent.model.end_epoch_action(epoch=0)


def learning_epoch(env: TreasurehuntEnv) -> None:
    """An episode, and then one training step of each agent, as in `Environment.run_experiment`."""
    epoch(env)
    for agent in env.agents:
        agent.model.train_step()


def rate(work: Callable[[], None], seconds: float) -> float:
    """Turns per second of processor time."""
    work()
    turns, start = 0, time.process_time()
    while (spent := time.process_time() - start) < seconds:
        work()
        turns += TURNS
    return turns / spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10, help="of processor time, for each")
    parser.add_argument("--radius", type=int, default=2, help="how far agents see")
    options = parser.parse_args()
    torch.set_num_threads(1)
    said = settings(options.radius)
    env = TreasurehuntEnv(TreasurehuntWorld(config=said, default_entity=EmptyEntity()), said)
    for agent in env.agents:
        agent.model.epsilon = 0.05  # of networks that act, not of chance
    rates = {
        "acting": rate(lambda: epoch(env), options.seconds),
        "learning": rate(lambda: learning_epoch(env), options.seconds),
    }
    publish(rates, "2 agents, one copy, IQN", {"torch": torch.__version__})


if __name__ == "__main__":
    main()
