"""Actions that are numbers, learned by PPO."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from pettingzoo import ParallelEnv

from keisei.errors import KeiseiError
from keisei.random_streams import RandomStreams
from keisei.worlds import Agent, Environment, load_world_config, make_environment
from keisei.worlds.config import PPOSettings
from keisei.worlds.continuous_ppo import ContinuousPPO
from keisei.worlds.memory import NO_ACTION
from keisei.worlds.models import ScriptedModel
from keisei.worlds.pettingzoo_world import PettingZooWorld
from keisei.worlds.view import View
from tests.worlds.conftest import weights_of
from tests.worlds.test_pettingzoo import Clock

SPREAD = "pettingzoo:mpe2.simple_spread_v3"
QUICK = ["agents=[ppo]", "ppo.hidden=[16]", "ppo.batch_size=32", "ppo.replay_ratio=0.05"]
NETWORKS = ["mlp", "gru"]


class Aim(ParallelEnv):
    """An agent sees a number and has to say 10 + 5 times it, as near as it can."""

    metadata = {"name": "aim"}  # noqa: RUF012  # PettingZoo's
    possible_agents = ("a",)

    def observation_space(self, agent):
        return spaces.Box(-1, 1, (1,), np.float32)

    def action_space(self, agent):
        return spaces.Box(0, 20, (1, 1), np.float32)

    def reset(self, seed=None, options=None):
        self.rng, self.agents = np.random.default_rng(seed), ["a"]
        return self._see(), {"a": {}}

    def _see(self):
        self.number = self.rng.uniform(-1, 1)
        return {"a": np.array([self.number], np.float32)}

    def step(self, actions):
        assert actions["a"] in self.action_space("a")
        miss = abs(actions["a"].item() - 10 - 5 * self.number) / 10
        return self._see(), {"a": -miss}, {"a": False}, {"a": False}, {"a": {}}


def test_ppo_learns_to_say_numbers():
    world = PettingZooWorld(Aim, copies=16, seed=1, max_turns=16)
    settings = [*QUICK, "ppo.gamma=0", "ppo.learning_rate=0.005", "ppo.replay_ratio=0.1"]
    with make_environment(world, settings) as environment:
        results = environment.run_experiment(30)
    first, last = results[0].returns[0] / 16, results[-1].returns[0] / 16
    assert first < -0.5
    assert last > -0.12


@pytest.mark.parametrize("network", NETWORKS)
def test_every_mode_learns_the_same_and_a_state_that_is_loaded_goes_on(network):
    made = []

    def run(*options):
        settings = ["copies=2", *QUICK, f"ppo.network={network}", *options]
        settings += ["world_settings={max_turns: 10, continuous_actions: true}"]
        made.append(make_environment(SPREAD, settings))
        made[-1].run_experiment(2)
        return weights_of(made[-1])

    plain = run("parallel.enabled=false")
    off = run("parallel.parallel_actions=true", "parallel.parallel_training=false")
    for one, other in zip(plain, off, strict=True):
        assert all(torch.equal(one[name], other[name]) for name in one)
    made[1].load_state_dict(made[0].state_dict())
    for environment in made:
        environment.world.streams = RandomStreams(3, 2)
        environment.run_experiment(1)
    for one, other in zip(weights_of(made[0]), weights_of(made[1]), strict=True):
        assert all(torch.equal(one[name], other[name]) for name in one)
    for environment in made:
        environment.close()


def test_what_is_learned_from_is_what_was_played():
    view = View((3,), np.dtype(np.float32), moves=2)
    algorithm = ContinuousPPO(view, 1, PPOSettings(hidden=[8], last_layer_scale=1.0))
    state = algorithm.new_state(torch.Generator().manual_seed(1))
    state["log_std"] -= 0.7
    seen = np.random.default_rng(1).normal(size=(50, 3)).astype(np.float32)
    scores, _ = algorithm.answer(state, torch.from_numpy(seen)[None], torch.zeros(1, 50, 0))
    actions, told = algorithm.choose(scores[0].numpy(), RandomStreams(1, 50), 0)
    batch = {"state": seen[None], "action": actions[None], "move": told["move"][None]}
    values, chosen, entropy, share = algorithm._said(state, batch)
    normal = torch.distributions.Normal(scores[0, :, :2], scores[0, :, 2:4].exp())
    known = normal.log_prob(torch.from_numpy(told["move"])).sum(dim=1)
    assert torch.allclose(torch.from_numpy(told["log_prob"]), known, atol=1e-5)
    assert torch.allclose(chosen[0], known, atol=1e-5)
    assert torch.allclose(entropy[0], normal.entropy().sum(dim=1), atol=1e-5)
    assert torch.allclose(values[0], torch.from_numpy(told["value"]))
    assert share.sum() == pytest.approx(1)


def test_an_agent_that_is_away_learns_nothing_of_those_turns():
    actions = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    world = PettingZooWorld(lambda: Clock(ends={"a": 3}, actions=actions), max_turns=8)
    with make_environment(world, QUICK) as environment:
        environment.run_experiment(1)
        steps = environment.agents[0].model.memory.arrays["action"][:8, 0]
    assert (steps == NO_ACTION).sum() == 5


def test_agents_may_act_at_random_by_numbers_too():
    with make_environment(PettingZooWorld(Aim, max_turns=5), ["agents=[random]"]) as environment:
        (result,) = environment.run_experiment(1)
    assert result.returns[0] < 0


def test_a_model_without_numbers_is_refused():
    world = PettingZooWorld(Aim, max_turns=5)
    agents = [Agent(0, ScriptedModel(lambda seen: np.zeros(len(seen))))]
    config = load_world_config("aim")
    with pytest.raises(KeiseiError, match="it must have them in `moves`"):
        Environment(world, agents, config).run_experiment(1)


@pytest.mark.parametrize("agents", ["double_dqn", "iqn", "{kind: ppo, central_critic: true}"])
def test_learners_that_choose_among_actions_are_refused(agents):
    with pytest.raises(KeiseiError, match=r"are numbers, .* agents=\[ppo\]"):
        make_environment(PettingZooWorld(Aim), [f"agents=[{agents}]"])
