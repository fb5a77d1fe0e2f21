"""Worlds for PettingZoo's learners, and PettingZoo's worlds for ours."""

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import ParallelEnv
from pettingzoo.test import parallel_api_test, parallel_seed_test

from keisei.errors import KeiseiError
from keisei.worlds import WORLDS, make_environment
from keisei.worlds.pettingzoo_env import parallel_env
from keisei.worlds.pettingzoo_world import PettingZooWorld

SPREAD = "pettingzoo:mpe2.simple_spread_v3"
QUICK = ["copies=2", "world_settings.max_turns=25", "double_dqn.hidden=[16]"]


class Clock(ParallelEnv):
    """Two agents see how many turns have passed; `ends` says in which turn an agent leaves."""

    metadata = {"name": "clock"}  # noqa: RUF012  # PettingZoo's
    possible_agents = ("a", "b")

    def __init__(self, ends=None, actions=None):
        self.ends, self.actions = ends or {}, actions or spaces.Discrete(2)

    def observation_space(self, agent):
        return spaces.Box(0, 100, (1,), np.float32)

    def action_space(self, agent):
        return self.actions

    def reset(self, seed=None, options=None):
        self.turn, self.agents = 0, list(self.possible_agents)
        return self._of_all(np.zeros(1, np.float32)), self._of_all({})

    def step(self, actions):
        assert all(action in self.actions for action in actions.values())
        self.turn += 1
        seen, got = self._of_all(np.full(1, self.turn, np.float32)), self._of_all(1.0)
        over = {agent: self.ends.get(agent) == self.turn for agent in self.agents}
        answer = seen, got, over, self._of_all(False), self._of_all({})
        self.agents = [agent for agent in self.agents if not over[agent]]
        return answer

    def _of_all(self, what):
        return dict.fromkeys(self.agents, what)


@pytest.mark.parametrize("name", WORLDS)
def test_every_world_passes_pettingzoos_own_test(name):
    parallel_api_test(parallel_env(name), num_cycles=300)
    parallel_seed_test(lambda: parallel_env(name))


def test_an_environment_shows_itself_as_text_and_as_a_picture():
    for mode, kind in (("ansi", str), ("rgb_array", np.ndarray), (None, type(None))):
        env = parallel_env("tag", render_mode=mode)
        env.reset(seed=1)
        assert isinstance(env.render(), kind)


def test_without_a_seed_every_environment_has_a_chance_of_its_own():
    starts = [parallel_env("treasure_hunt") for _ in range(2)]
    first, second = (env.reset()[0]["agent_0"] for env in starts)
    assert not np.array_equal(first, second)


def test_a_seed_holds_until_another_one_is_given():
    def episodes():
        env = parallel_env("treasure_hunt")
        return [env.reset(seed=seed)[0]["agent_0"] for seed in (1, None, 1)]

    first, second = episodes(), episodes()
    assert all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))
    assert np.array_equal(first[0], first[2])
    assert not np.array_equal(first[0], first[1])


@pytest.mark.parametrize("kind", ["double_dqn", "ppo"])
def test_an_environment_that_others_wrote_trains_with_our_learners(kind):
    with make_environment(SPREAD, [*QUICK, f"agents=[{kind}]"]) as environment:
        results = environment.run_experiment(2)
    assert environment.world.num_agents == 3
    assert set(results[-1].losses) == {0, 1, 2}
    assert np.isfinite(results[-1].returns).all()


def test_an_environment_that_is_cut_early_begins_again_and_says_truncated():
    world = PettingZooWorld(lambda: parallel_env("tag", max_turns=3), copies=2, max_turns=7)
    world.reset()
    truncated = [world.step(np.zeros((4, 2), np.int64))[2].all() for _ in range(7)]
    assert truncated == [False, False, True, False, False, True, True]


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_what_is_remembered_is_what_was_seen_before_the_action(enabled):
    world = PettingZooWorld(Clock, max_turns=4)
    with make_environment(world, [f"parallel.enabled={enabled}"]) as environment:
        environment.collect_epoch()
        for agent in environment.agents:
            assert agent.model.memory.newest(5)["state"].ravel().tolist() == [0, 1, 2, 3, 4]


def test_what_an_agent_saw_does_not_change_when_the_world_goes_on():
    world = PettingZooWorld(Clock)
    world.reset()
    seen = [world.pov(0), *world.pov()]
    world.step(np.zeros((2, 1), np.int64))
    assert [float(one[0, 0]) for one in seen] == [0, 0, 0]


def test_agents_that_end_together_begin_again():
    world = PettingZooWorld(lambda: Clock({"a": 2, "b": 2}))
    world.reset()
    dones = [world.step(np.zeros((2, 1), np.int64))[1][:, 0].tolist() for _ in range(3)]
    assert dones == [[False] * 2, [True] * 2, [False] * 2]


def test_an_agent_that_leaves_before_the_others_is_refused():
    world = PettingZooWorld(lambda: Clock({"a": 2, "b": 6}), name="clock")
    with (
        pytest.raises(KeiseiError, match="clock: a left the episode in turn 2, before b"),
        make_environment(world) as environment,
    ):
        environment.collect_epoch()


def test_actions_that_do_not_begin_at_0_are_those_of_the_environment():
    world = PettingZooWorld(lambda: Clock(actions=spaces.Discrete(2, start=1)), max_turns=8)
    with make_environment(world) as environment:
        environment.collect_epoch()  # the clock refuses any other action
        actions = environment.agents[0].model.memory.newest(9)["action"][:8]
    assert set(actions.ravel().tolist()) <= {0, 1}


def test_actions_of_several_numbers_are_refused():
    with pytest.raises(KeiseiError, match="the actions of a are not discrete"):
        PettingZooWorld(lambda: Clock(actions=spaces.MultiBinary(3)))


def test_a_first_turn_begins_an_episode_by_itself():
    with make_environment(SPREAD, QUICK) as environment:
        environment.take_turn()
        assert environment.world.turn == 1


@pytest.mark.parametrize(
    ("world", "settings", "said"),
    [
        (SPREAD, ["turn_order=sequential"], "turn_order=simultaneous"),
        ("pettingzoo:json", [], "no PettingZoo environment"),
        ("pettingzoo:", [], "name a module"),
        ("pettingzoo:.x", [], "no PettingZoo environment"),
        (SPREAD, ["world_settings.bogus=1"], "cannot be made with {'bogus': 1}: .*bogus"),
        (SPREAD, ["world_settings.max_turns=abc"], "max_turns: .* integer.*, not 'abc'"),
        (SPREAD, ["world_settings.max_turns=0"], "max_turns: .* greater than or equal to 1"),
    ],
)
def test_what_does_not_fit_is_one_clear_line(world, settings, said):
    with pytest.raises(KeiseiError, match=said) as refused:
        make_environment(world, [*QUICK, *settings])
    assert "\n" not in str(refused.value)
