"""Worlds for PettingZoo's learners, and PettingZoo's worlds for ours."""

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

from keisei.errors import KeiseiError
from keisei.worlds import WORLDS, make_environment
from keisei.worlds.pettingzoo_env import WorldEnv, parallel_env
from keisei.worlds.pettingzoo_world import PettingZooWorld

SPREAD = "pettingzoo:mpe2.simple_spread_v3"
QUICK = ["copies=2", "world_settings.max_turns=25", "double_dqn.hidden=[16]"]


@pytest.mark.parametrize("name", WORLDS)
def test_every_world_passes_pettingzoos_own_test(name):
    parallel_api_test(parallel_env(name), num_cycles=300)
    parallel_seed_test(lambda: parallel_env(name))


def test_an_environment_shows_itself_as_text_and_as_a_picture():
    for mode, kind in (("ansi", str), ("rgb_array", np.ndarray), (None, type(None))):
        env = WorldEnv("tag", render_mode=mode)
        env.reset(seed=1)
        assert isinstance(env.render(), kind)


@pytest.mark.parametrize("kind", ["double_dqn", "ppo"])
def test_an_environment_that_others_wrote_trains_with_our_learners(kind):
    with make_environment(SPREAD, [*QUICK, f"agents=[{kind}]"]) as environment:
        results = environment.run_experiment(2)
    assert environment.world.num_agents == 3
    assert set(results[-1].losses) == {0, 1, 2}
    assert np.isfinite(results[-1].returns).all()


def test_an_environment_that_ends_early_begins_again_and_says_done():
    world = PettingZooWorld(lambda: parallel_env("tag", max_turns=3), copies=2, max_turns=7)
    world.reset()
    dones = [world.step(np.zeros((4, 2), np.int64))[1].all() for _ in range(7)]
    assert dones == [False, False, True, False, False, True, True]


def test_a_first_turn_begins_an_episode_by_itself():
    with make_environment(SPREAD, QUICK) as environment:
        environment.take_turn()
        assert environment.world.turn == 1


def test_what_does_not_fit_is_one_clear_line():
    with pytest.raises(KeiseiError, match="turn_order=simultaneous"):
        make_environment(SPREAD, [*QUICK, "turn_order=sequential"]).run_experiment(1)
    with pytest.raises(KeiseiError, match="no PettingZoo environment"):
        make_environment("pettingzoo:json")
