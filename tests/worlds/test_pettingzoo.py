"""Worlds for PettingZoo's learners, and PettingZoo's worlds for ours."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from pettingzoo import ParallelEnv
from pettingzoo.test import parallel_api_test, parallel_seed_test
from typer.testing import CliRunner

from keisei.cli import app
from keisei.errors import KeiseiError
from keisei.worlds import WORLDS, make_environment
from keisei.worlds.config import DoubleDQNSettings
from keisei.worlds.double_dqn import DoubleDQN
from keisei.worlds.memory import NO_ACTION
from keisei.worlds.pettingzoo_env import parallel_env
from keisei.worlds.pettingzoo_world import PettingZooWorld
from keisei.worlds.stack import leaves_of
from keisei.worlds.view import View
from tests.worlds.conftest import weights_of

SPREAD = "pettingzoo:mpe2.simple_spread_v3"
QUICK = ["copies=2", "world_settings.max_turns=25", "double_dqn.hidden=[16]"]


class Clock(ParallelEnv):
    """Two agents see how many turns have passed; `ends` says in which turn an agent leaves.

    It comes again in the turn that `comes` says.
    """

    metadata = {"name": "clock"}  # noqa: RUF012  # PettingZoo's
    possible_agents = ("a", "b")

    def __init__(self, ends=None, actions=None, comes=None):
        self.ends, self.actions = ends or {}, actions or spaces.Discrete(2)
        self.comes = comes or {}

    def observation_space(self, agent):
        return spaces.Box(0, 100, (1,), np.float32)

    def action_space(self, agent):
        return self.actions

    def reset(self, seed=None, options=None):
        self.turn, self.agents = 0, list(self.possible_agents)
        return self._of_all(np.zeros(1, np.float32)), self._of_all({})

    def step(self, actions):
        assert all(action in self.actions for action in actions.values())
        assert sorted(actions) == sorted(self.agents)
        self.turn += 1
        seen, got = self._of_all(np.full(1, self.turn, np.float32)), self._of_all(1.0)
        over = {agent: self.ends.get(agent) == self.turn for agent in self.agents}
        answer = seen, got, over, self._of_all(False), self._of_all({})
        stay = [agent for agent in self.agents if not over[agent]]
        come = [agent for agent in self.possible_agents if self.comes.get(agent) == self.turn]
        self.agents = stay + come
        answer[0].update(dict.fromkeys(come, np.full(1, self.turn, np.float32)))
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
    truncated = []
    for _ in range(7):
        world.begin_turn()
        truncated.append(world.step(np.zeros((4, 2), np.int64))[2].all())
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
    seen, dones = [], []
    for _ in range(3):
        world.begin_turn()
        seen.append(float(world.pov(0)[0, 0]))
        dones.append(world.step(np.zeros((2, 1), np.int64))[1][:, 0].tolist())
    assert dones == [[False] * 2, [True] * 2, [False] * 2]
    assert seen == [0, 1, 0]


@pytest.mark.parametrize("kind", ["double_dqn", "iqn", "ppo"])
@pytest.mark.parametrize("network", ["mlp", "gru"])
def test_an_agent_that_leaves_learns_nothing_until_it_comes_again(kind, network):
    def make():
        return Clock({"a": 2, "b": 8}, comes={"a": 5})

    own = "hidden: [8], replay_ratio: 0.2" + (", sequence: 3" if network == "gru" else "")
    settings = [f"agents=[{{kind: {kind}, network: {network}, {own}}}]"]
    world = PettingZooWorld(make, copies=2, max_turns=8)
    with make_environment(world, settings) as environment:
        result = environment.run_experiment(3)[-1]
        memory = environment.agents[0].model.memory
        steps = memory.newest(9)  # the last one is what it saw when the epoch was over
        there = [True, True, False, False, False, True, True, True, False]
        assert (steps["action"][:, 0] != NO_ACTION).tolist() == there
        assert np.flatnonzero(steps["done"][:, 0]).tolist() == [1]
        assert np.flatnonzero(steps["truncated"][:, 0]).tolist() == [7]
        assert steps["state"].reshape(9, 2)[:, 0].tolist() == [0, 1, 2, 0, 0, 5, 6, 7, 8]
    assert result.returns.tolist() == [5, 8]
    assert np.isfinite(list(result.losses.values())).all()


@pytest.mark.parametrize("kind", ["double_dqn", "ppo", "random"])
def test_an_agent_that_never_comes_holds_up_nobody(kind):
    class Alone(Clock):
        def reset(self, seed=None, options=None):
            super().reset()
            self.agents = ["b"]
            return self._of_all(np.zeros(1, np.float32)), {}

    world = PettingZooWorld(Alone, copies=2, max_turns=5)
    settings = [f"agents=[{kind}, ppo]", "ppo.replay_ratio=0.2", "double_dqn.replay_ratio=0.2"]
    with make_environment(world, settings) as environment:
        before = weights_of(environment)
        result = environment.run_experiment(2)[-1]
        after = weights_of(environment)
    assert result.returns.tolist() == [0, 5]
    assert not torch.equal(before[-1]["w0"], after[-1]["w0"])
    assert kind == "random" or torch.equal(before[0]["w0"], after[0]["w0"])
    assert 1 in result.losses


class Door(Clock):
    """An agent sees which of four actions are possible: two, others in each turn."""

    def observation_space(self, agent):
        parts = {"action_mask": spaces.MultiBinary(4), "observation": spaces.Discrete(100)}
        return spaces.Dict(parts)

    def reset(self, seed=None, options=None):
        super().reset()
        return self._look(), {}

    def step(self, actions):
        for action in actions.values():
            assert self._possible()[action], f"{action} in turn {self.turn}"
        _, *rest = super().step(actions)
        return self._look(), *rest

    def _possible(self):
        return np.roll(np.array([1, 0, 1, 0], np.int8), self.turn)

    def _look(self):
        return self._of_all({"action_mask": self._possible(), "observation": self.turn})


@pytest.mark.parametrize("kind", ["double_dqn", "iqn", "ppo", "random"])
@pytest.mark.parametrize("network", ["mlp", "gru"])
def test_only_possible_actions_are_chosen(kind, network):
    def make():
        return Door({"a": 9, "b": 9}, spaces.Discrete(4))

    own = f", network: {network}, hidden: [8], sequence: 3, replay_ratio: 0.1"
    settings = [f"agents=[{{kind: {kind}{'' if kind == 'random' else own}}}]"]
    world = PettingZooWorld(make, copies=3, max_turns=18)
    assert world.views[0].mask == 4
    with make_environment(world, settings) as environment:
        result = environment.run_experiment(4)[-1]  # the door asserts it
    assert result.returns.tolist() == [9, 9]
    if kind == "ppo":
        entropy = result.by_agent["entropy"][0]
        assert 0.9 * np.log(2) < entropy <= np.log(2) + 1e-6  # of two actions, not of four


def test_impossible_actions_do_not_count_for_what_comes_next():
    view = View((4,), np.dtype(np.float32), mask=2)
    dqn = DoubleDQN(view, 2, DoubleDQNSettings(hidden=[4], gamma=0.5))
    state = dqn.new_state(torch.Generator().manual_seed(1))
    for name in ("w", "b"):
        for part in ("", "target."):
            state[f"{part}{name}1"].zero_()
    for part in ("", "target."):
        state[f"{part}b1"] += torch.tensor([10.0, 2.0])  # the first is better, but not possible
    batch = {
        "state": np.zeros((1, 1, 4), np.float32),
        "next_state": np.array([[[0, 0, 0, 1]]], np.float32),
        "action": np.ones((1, 1), np.int64),
        "reward": np.zeros((1, 1), np.float32),
        "done": np.zeros((1, 1), np.bool_),
    }
    loss = dqn.loss(leaves_of(state, dqn.weights), state, batch)
    assert loss.item() == pytest.approx(abs(2 - 0.5 * 2) - 0.5)


def test_the_return_of_an_episode_is_that_of_an_episode():
    world = PettingZooWorld(lambda: Clock({"a": 4, "b": 4}), copies=2, max_turns=10)
    with make_environment(world, ["agents=[random]"]) as environment:
        assert environment.run_experiment(1)[0].returns.tolist() == [4, 4]


@pytest.mark.parametrize(("ends", "said"), [(20, 1), (8, 0), (3, 0)])
def test_episodes_longer_than_an_epoch_are_cut_off_and_that_is_said_once(caplog, ends, said):
    world = PettingZooWorld(lambda: Clock({"a": ends, "b": ends}), copies=2, max_turns=8)
    with make_environment(world, ["agents=[random]"]) as environment:
        environment.run_experiment(3)
    warnings = [one for one in caplog.messages if "episodes last longer than 8 turns" in one]
    assert len(warnings) == said


OWN = """
from tests.worlds.test_pettingzoo import Clock

class Lamp(Clock):
    def __init__(self, render_mode=None):
        super().__init__({"a": 6, "b": 6})
        self.render_mode = render_mode

    def render(self):
        import numpy as np

        return np.full((4, 6, 3), 40 * self.turn, np.uint8)

parallel_env = Lamp
"""


def test_an_environment_in_the_current_folder_is_trained_resumed_and_filmed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_lamp.py").write_text(OWN)

    def keisei(*words):
        return CliRunner().invoke(app, ["worlds", *words])

    options = ("-o", "copies=2", "-o", "epochs=2", "-o", "world_settings.max_turns=12")
    trained = keisei("train", "pettingzoo:my_lamp", "--name", "a", *options)
    assert trained.exit_code == 0, trained.stderr
    assert "keisei worlds watch a --trust --film a.gif" in trained.stdout
    more = keisei("train", "--resume", "a", "--trust", "-o", "epochs=3")
    assert more.exit_code == 0, more.stderr
    filmed = keisei("watch", "a", "--trust", "--film", "a.gif")
    assert filmed.exit_code == 0, filmed.stderr
    assert "7 frames written" in filmed.stdout  # one episode: its start and 6 turns
    assert (tmp_path / "a.gif").read_bytes()[:3] == b"GIF"
    plain = keisei("watch", "a", "--trust")
    assert "add --film FILE.gif" in plain.stdout
    assert "returns: agent 0 6.0" in plain.stdout
    played = keisei("watch", "a", "--trust", "--human", "0")
    assert "cannot be played by a person" in " ".join(played.stderr.split())


def test_pixels_are_learned_from_as_bytes():
    class Screen(Clock):
        def observation_space(self, agent):
            return spaces.Box(0, 255, (20, 24, 3), np.uint8)

        def reset(self, seed=None, options=None):
            super().reset()
            return self._of_all(np.zeros((20, 24, 3), np.uint8)), {}

        def step(self, actions):
            _, *rest = super().step(actions)
            return self._of_all(np.full((20, 24, 3), 9, np.uint8)), *rest

    world = PettingZooWorld(lambda: Screen({"a": 30, "b": 30}), copies=2, max_turns=10)
    settings = ["double_dqn={network: cnn, hidden: [8], memory_mb: 1, replay_ratio: 0.1}"]
    with make_environment(world, settings) as environment:
        result = environment.run_experiment(2)[-1]
        memory = environment.agents[0].model.memory.arrays["state"]
    assert memory.dtype == np.uint8
    assert memory.nbytes < 1_000_000
    assert np.isfinite(list(result.losses.values())).all()


def test_actions_that_do_not_begin_at_0_are_those_of_the_environment():
    world = PettingZooWorld(lambda: Clock(actions=spaces.Discrete(2, start=1)), max_turns=8)
    with make_environment(world) as environment:
        environment.collect_epoch()  # the clock refuses any other action
        actions = environment.agents[0].model.memory.newest(9)["action"][:8]
    assert set(actions.ravel().tolist()) <= {0, 1}


def test_actions_of_another_kind_are_refused():
    with pytest.raises(KeiseiError, match="the actions of a are neither discrete nor numbers"):
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
        ("pettingzoo:.x", [], "name a module"),
        ("pettingzoo:nowhere", [], "there is no module nowhere in"),
        (SPREAD, ["world_settings.bogus=1"], "cannot be made with {'bogus': 1}: .*bogus"),
        (SPREAD, ["world_settings.max_turns=abc"], "max_turns: .* integer.*, not 'abc'"),
        (SPREAD, ["world_settings.max_turns=0"], "max_turns: .* greater than or equal to 1"),
    ],
)
def test_what_does_not_fit_is_one_clear_line(world, settings, said):
    with pytest.raises(KeiseiError, match=said) as refused:
        make_environment(world, [*QUICK, *settings])
    assert "\n" not in str(refused.value)
