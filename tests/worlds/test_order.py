"""Who acts first, and what that is worth."""

import numpy as np
import pytest

from keisei.worlds import Agent, Environment, load_world_config
from keisei.worlds.models import ScriptedModel
from keisei.worlds.tag import Tag
from keisei.worlds.treasure_hunt import VALUES, TreasureHunt

EPOCHS = 40
ROWS, COLUMNS = np.divmod(np.arange(81), 9) - np.array(4)  # of a window, from its centre
FAR_FIRST = np.argsort(-(np.abs(ROWS) + np.abs(COLUMNS)), kind="stable")
UP, DOWN, LEFT, RIGHT = range(4)


def greedy(world):
    """Goes to the nearest thing that is good."""
    good = np.isin(np.arange(256), [world.code[name] for name in VALUES if name != "bone"])
    vertical = np.where(ROWS < 0, UP, DOWN)
    towards = np.where(np.abs(ROWS) > np.abs(COLUMNS), vertical, np.where(COLUMNS < 0, LEFT, RIGHT))

    def script(seen):
        there = good[seen][:, FAR_FIRST]
        nearest = 80 - there[:, ::-1].argmax(axis=1)
        return towards[FAR_FIRST[nearest]]

    return ScriptedModel(script)


def standings(order):
    """How far eight equal agents are from their mean, in standard errors."""
    world = TreasureHunt(16, 1, num_agents=8, height=9, width=9, max_turns=40, spawn_chance=1)
    agents = [Agent(i, greedy(world)) for i in range(8)]
    config = load_world_config("treasure_hunt", overrides=[f"turn_order={order}"])
    results = Environment(world, agents, config).run_experiment(EPOCHS)
    returns = np.stack([result.returns for result in results])
    apart = returns - returns.mean(axis=1, keepdims=True)
    return apart.mean(axis=0) / (apart.std(axis=0, ddof=1) / np.sqrt(EPOCHS))


def test_in_a_random_order_no_agent_has_an_advantage():
    # Of eight such numbers from chance alone, one in 400 times any is above 3.6.
    assert np.abs(standings("random")).max() < 3.6


def test_in_a_fixed_order_the_first_one_has():
    apart = standings("simultaneous")
    assert apart[0] > 6
    assert apart[-1] < -6


def test_in_a_random_order_each_of_two_gets_what_both_want_in_half_of_the_copies():
    world = TreasureHunt(400, 1, num_agents=2, spawn_chance=0)
    world.reset()
    world.grid[1][:] = 0
    for agent, column in enumerate((3, 5)):
        world.positions[agent] = world.first_cell + world.cell(3, column)
        world.grid[1][world.positions[agent]] = world.bodies[agent]
    world.put("gem", world.first_cell + world.cell(3, 4))
    actions = np.repeat([[3], [2]], 400, axis=1)  # right, left
    rewards, *_ = world.step(actions, world.draw_order())
    assert (rewards.sum(axis=0) == 5).all()
    assert 160 < (rewards[0] == 5).sum() < 240
    moved = world.positions == world.first_cell + world.cell(3, 4)
    assert np.array_equal(moved, rewards == 5)


def test_after_a_turn_in_a_random_order_every_agent_is_itself_again():
    world = Tag(copies=50, seed=1, num_agents=6)
    rng = np.random.default_rng(1)
    for _ in range(60):
        world.begin_turn()
        before = world.it.copy()
        stay = np.full((6, 50), world.actions.index("stay"))
        world.step(stay, world.draw_order())
        assert np.array_equal(world.it, before)
        world.begin_turn()
        rewards, *_ = world.step(rng.integers(0, 5, (6, 50)), world.draw_order())
        assert (world.it.sum(axis=0) == 1).all()
        assert (rewards.sum(axis=0) == 0).all()
        assert (world.numbers == np.arange(6)[:, None]).all()
        assert (world.grid[1][world.positions] == world.bodies).all()


@pytest.mark.parametrize("order", ["sequential", "random"])
def test_a_script_may_ask_who_it_acts_for(order):
    """A rule about one agent goes by its number, whatever row it is in."""

    class Led(TreasureHunt):
        def act(self, agent, actions):
            self.rewards[agent] += self.numbers[agent] == 1

    world = Led(20, 1, num_agents=3)
    world.begin_turn()
    order = world.draw_order() if order == "random" else None
    rewards, *_ = world.step(np.zeros((3, 20), np.int64), order)
    assert rewards.tolist() == [[0] * 20, [1] * 20, [0] * 20]
