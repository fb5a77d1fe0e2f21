"""What an agent can be asked about itself, for all copies at once."""

import numpy as np
import pytest

from keisei import configs
from keisei.errors import KeiseiError
from keisei.worlds import make_environment
from keisei.worlds.config import load_world_config
from keisei.worlds.parallel_environment import build


def test_acting_returns_what_was_got_by_it(make):
    environment = make("turn_order=sequential", "copies=32")
    world, agent = environment.world, environment.agents[0]
    got = np.zeros(32)
    for _ in range(20):
        world.begin_turn()
        before = world.rewards[0].copy()
        now = agent.act(world, agent.get_action(agent.pov(world)))
        assert np.array_equal(now, world.rewards[0] - before)
        got += now
        world.end_turn()
    assert (got != 0).any()


def test_an_agent_that_is_timed_out_cannot_act(make):
    environment = make("world_settings.facing=true", world="cleanup")
    world = environment.world
    world.reset()
    world.time_out(np.array([1]), np.array([2]), 5)
    able = np.array([agent.can_act(world) for agent in environment.agents])
    assert np.argwhere(~able).tolist() == [[1, 2]]


def test_an_agent_is_done_where_its_episode_is_over_or_it_has_left(make):
    environment = make()
    world, agent = environment.world, environment.agents[0]
    world.reset()
    world.done[1] = True
    assert agent.is_done(world).tolist() == [False, True, False, False]
    assert agent.can_act(world).all()
    away = "pettingzoo:mpe2.simple_spread_v3"
    with make_environment(away, ["copies=2", "agents=[random]"]) as environment:
        environment.world.begin_turn()
        environment.world.present[1, 0] = False
        assert environment.agents[1].is_done(environment.world).tolist() == [True, False]
        assert environment.agents[1].can_act(environment.world).tolist() == [False, True]


@pytest.mark.parametrize("name", configs.WORLD_NAMES)
def test_settings_that_come_with_keisei_can_be_trained_with(name):
    short = ["world_settings.max_turns=5", "copies=2", "parallel.world_workers=1"]
    config = load_world_config(None, name, [*short, "ppo.hidden=[8]"])
    assert "world" in config.model_fields_set
    with build(config) as environment:
        assert len(environment.run_experiment(1)) == 1


def test_settings_that_nobody_knows_are_an_error_that_names_those_there_are():
    with pytest.raises(KeiseiError, match="choose one of cleanup-alone, cleanup-selfish"):
        load_world_config(None, "cleanup-alon")
