"""Plain, picture and memory networks: their arithmetic, and what they can learn."""

from typing import ClassVar

import numpy as np
import pytest
import torch
from gymnasium import spaces
from pettingzoo import ParallelEnv
from torch import nn

from keisei.errors import KeiseiError
from keisei.worlds import Entity, World, make_environment
from keisei.worlds.config import DoubleDQNSettings
from keisei.worlds.double_dqn import DoubleDQN
from keisei.worlds.memory import NO_ACTION
from keisei.worlds.networks import MemoryNetwork, PictureNetwork, new_weights
from keisei.worlds.pettingzoo_world import PettingZooWorld
from keisei.worlds.ppo import _sequences
from keisei.worlds.stack import dense, leaves_of
from keisei.worlds.view import Ones, View

GENERATOR = torch.Generator().manual_seed(1)
NOTHING = torch.zeros(2, 3, 0)


def stacked(network, agents=2):
    made = [new_weights(network.layout, GENERATOR) for _ in range(agents)]
    return {name: torch.cat([weights[name] for weights in made]) for name in made[0]}


@pytest.mark.parametrize(
    "shape", [(9, 9, 4), (30, 20, 3), (4, 9, 9), (84, 60, 3)], ids=lambda shape: f"{shape}"
)
def test_filters_give_what_pytorchs_give(shape):
    view = View(shape, np.dtype(np.float32))
    network = PictureNetwork(view, 5, DoubleDQNSettings(channels=[6, 7], hidden=[]))
    weights = stacked(network)
    inputs = torch.rand(2, 3, view.inputs, generator=GENERATOR)
    got, _ = network.features(weights, inputs, NOTHING)
    for agent in range(2):
        x = inputs[agent].view(3, *shape)
        x = x if view.planes_first else x.permute(0, 3, 1, 2)
        for layer, (size, stride, padding) in enumerate(network._filters):
            matrix = weights[f"wf{layer}"][agent]  # rows are places of the filter, then planes
            filters = matrix.view(size, size, -1, matrix.shape[1]).permute(3, 2, 0, 1)
            bias = weights[f"bf{layer}"][agent, 0]
            x = torch.relu(nn.functional.conv2d(x, filters, bias, stride, padding))
        assert torch.allclose(got[agent], x.permute(0, 2, 3, 1).flatten(1), atol=1e-5)


def test_large_pictures_are_averaged_down_and_pixels_go_from_0_to_1():
    view = View((200, 300, 3), np.dtype(np.uint8))
    network = PictureNetwork(view, 5, DoubleDQNSettings())
    seen = torch.from_numpy(view.encode(np.full((2, 1, 200, 300, 3), 255, np.uint8)))
    assert network._picture(seen).shape == (2, 1, 50, 75, 3)
    assert torch.equal(network._picture(seen), torch.ones(2, 1, 50, 75, 3))


@pytest.mark.parametrize("settings", ["", "facing: true", "facing: true, distinct_agents: true"])
def test_the_rows_of_the_ones_add_up_to_the_product_with_all_inputs(settings):
    options = [f"world_settings={{{settings}}}", "copies=4", "agents=[ppo]"]
    with make_environment("cleanup", options) as environment:
        environment.run_epoch()
        (team,), seen = environment.teams, environment.world.pov()
    view = team.algorithm.view
    every = torch.from_numpy(view.encode(seen))
    ones = team.algorithm.inputs_of(seen)
    assert isinstance(ones, Ones)
    assert len(ones.places) == every.sum()
    assert torch.allclose(dense(team.stack, "0", ones), dense(team.stack, "0", every), atol=1e-5)


def test_windows_without_anything_in_them_are_the_bias_alone():
    view = View((3,), np.dtype(np.uint8), np.eye(4, 3, k=-1, dtype=np.float32))
    weights = {"w0": torch.ones(2, 9, 5), "b0": torch.full((2, 1, 5), 7.0)}
    seen = np.array([[[0, 0, 0], [0, 2, 0]], [[3, 3, 3], [0, 0, 0]]], np.uint8)
    sums = dense(weights, "0", view.ones(seen))
    assert sums[:, :, 0].tolist() == [[7, 8], [10, 7]]


def test_planes_that_are_not_0_or_1_are_all_given_to_the_network():
    view = View((3,), np.dtype(np.uint8), np.array([[0.0], [0.5]], np.float32))
    algorithm = DoubleDQN(view, 2, DoubleDQNSettings())
    assert algorithm.inputs_of(np.ones((1, 4, 3), np.uint8)).tolist() == [[[0.5] * 3] * 4]


def test_filters_need_a_picture():
    with pytest.raises(KeiseiError, match=r"cnn is for pictures.* has the shape \(18,\)"):
        DoubleDQN(View((18,), np.dtype(np.float32)), 2, DoubleDQNSettings(network="cnn"))


def memory_network(hidden):
    settings = DoubleDQNSettings(network="gru", hidden=hidden)
    return MemoryNetwork(View((4,), np.dtype(np.float32)), 5, settings)


def test_sequences_give_what_pytorchs_gru_gives():
    network = memory_network([5])
    weights, inputs = stacked(network), torch.rand(2, 3, 7, 4, generator=GENERATOR)
    carried = torch.rand(2, 3, 5, generator=GENERATOR)
    never = torch.zeros(2, 3, 7, dtype=torch.bool)
    got = network.unroll(weights, inputs, carried, never, never)
    for agent in range(2):
        gru = nn.GRU(4, 5, batch_first=True)
        for ours, theirs in (("x", "ih"), ("h", "hh")):
            getattr(gru, f"weight_{theirs}_l0").data = weights[f"w{ours}"][agent].T
            getattr(gru, f"bias_{theirs}_l0").data = weights[f"b{ours}"][agent, 0]
        expected, _ = gru(inputs[agent], carried[agent][None])
        assert torch.allclose(got[agent], expected, atol=1e-6)


def test_an_episode_of_a_sequence_is_answered_as_if_it_stood_alone():
    network = memory_network([6, 5])
    weights, inputs = stacked(network), torch.rand(2, 3, 7, 4, generator=GENERATOR)
    first, looks = torch.zeros(2, 3, 7, dtype=torch.bool), torch.zeros(2, 3, 7, dtype=torch.bool)
    first[:, :, 3] = True
    looks[:, :, 5] = True  # turn 6 goes on from turn 4
    got = network.unroll(weights, inputs, torch.rand(2, 3, 5), first, looks)
    carried = torch.zeros(2, 3, 5)
    for turn in (3, 4, 6):
        new, carried = network.features(weights, inputs[:, :, turn], carried)
        assert torch.allclose(got[:, :, turn], new, atol=1e-6)


class Recall(World):
    """A sign is seen in the first turn alone; in the last one, the action that it asked for pays.

    The agent stands still. Whoever forgets the sign gets 0 on average, and who does not gets 1.
    """

    name = "recall"
    entities: ClassVar[tuple[Entity, ...]] = (
        Entity("sand", "."),
        Entity("wall", "#", solid=True),
        Entity("red", "r", layer=1),
        Entity("blue", "b", layer=1),
        Entity("agent", "A", layer=1, solid=True),
    )
    actions = ("red", "blue")
    state_names: ClassVar[tuple[str, ...]] = (*World.state_names, "signs")

    def __init__(self, copies=1, seed=0, **settings):
        small = {"num_agents": 1, "height": 3, "width": 5, "vision": 1, "max_turns": 4}
        super().__init__(copies, seed, **(small | settings))
        self.signs = np.zeros(copies, np.int64)

    def populate(self):
        self.place_agents(self.inside[1:2])
        self.signs[:] = self.streams.uniform() < 0.5
        codes = np.array([self.code["red"], self.code["blue"]], np.uint8)
        self.grid[1][self.positions[0] + 1] = codes[self.signs]

    def transition(self):
        if self.turn > 0:
            self.grid[1][self.positions[0] + 1] = 0

    def act(self, agent, actions):
        if self.turn == self.max_turns - 1:
            self.rewards[agent] += np.where(actions == self.signs, 1.0, -1.0)


QUICK = {
    "double_dqn": [
        "epsilon_epochs=30", "epsilon_end=0", "learning_rate=0.01", "replay_ratio=0.15",
        "target_step=0.05", "memory=20000",
    ],
    "iqn": [
        "epsilon_epochs=30", "epsilon_end=0", "learning_rate=0.01", "replay_ratio=0.15",
        "target_step=0.05", "memory=20000",
    ],
    "ppo": ["learning_rate=0.01", "replay_ratio=0.1", "batch_size=64"],
}  # fmt: skip


def learned(kind, network, epochs=60):
    """The share of signs that were remembered in the last epochs."""
    settings = ["hidden=[16]", "sequence=4", f"network={network}", *QUICK[kind]]
    overrides = [f"agents=[{kind}]", *(f"{kind}.{setting}" for setting in settings)]
    with make_environment(Recall(copies=32, seed=1), overrides) as environment:
        results = environment.run_experiment(epochs)
    return np.mean([(1 + result.returns[0]) / 2 for result in results[-10:]])


@pytest.mark.parametrize("kind", QUICK)
def test_a_gru_remembers_what_an_mlp_cannot(kind):
    assert learned(kind, "gru") > 0.9
    assert 0.4 < learned(kind, "mlp") < 0.6


class Brief(Recall):
    """Each copy's episode may end in any turn."""

    def act(self, agent, actions):
        super().act(agent, actions)
        self.done |= self.streams.uniform() < 0.1


@pytest.mark.parametrize("kind", QUICK)
def test_nothing_is_carried_over_the_end_of_an_episode(kind):
    settings = [f"agents=[{kind}]", f"{kind}.network=gru", f"{kind}.hidden=[4]"]
    with make_environment(Brief(copies=8, seed=1, max_turns=30), settings) as environment:
        environment.collect_epoch()
        memory = environment.agents[0].model.memory
        turns = memory.newest(30)
    assert turns["done"].any()
    assert np.array_equal(turns["first"][1:] > 0, turns["done"][:-1])
    assert (turns["carried"][1:][turns["done"][:-1]] == 0).all()
    assert (turns["carried"][1:][~turns["done"][:-1]] != 0).any(axis=-1).all()


@pytest.mark.parametrize("kind", QUICK)
def test_sequences_are_answered_in_learning_as_they_were_in_play(make, kind):
    more = "" if kind == "ppo" else ", memory: 200"
    agents = f"agents=[{{kind: {kind}, network: gru{more}}}]"
    environment = make(agents, "parallel.train_interval=2")
    for _ in range(3):  # sequences go on from one episode into the next, and over the ring's seam
        environment.collect_epoch()
    for _, learner in environment.learners:
        algorithm, memory = learner.algorithm, learner.memory
        batch = memory.sample_sequences(300, 15, np.random.default_rng(1))
        first = batch["first"] > 0
        assert first[:, 1:].any()
        played = batch["carried"]
        assert (played[first] == 0).all()
        batch = {name: array[None] for name, array in batch.items()}
        batch["carried"] = batch["carried"][:, :, 0]
        inputs = torch.from_numpy(algorithm.view.encode(batch["state"]))
        with torch.no_grad():
            known = algorithm.features(learner.state, inputs, batch)[0].numpy()
        goes_on = ~first[:, 1:]
        assert np.allclose(known[:, :-1][goes_on], played[:, 1:][goes_on], atol=1e-5)


def test_ppos_first_step_on_sequences_finds_the_policy_that_played(make):
    environment = make("agents=[{kind: ppo, network: gru}]")
    environment.collect_epoch()
    for _, learner in environment.learners:
        batch = {name: array[:1] for name, array in learner.draw(1).items()}  # 1 agent
        assert batch["action"].shape == (1, 2, 6)  # 20 turns and a look beyond the cut; 16 steps
        inputs = torch.from_numpy(learner.algorithm.view.encode(batch["state"]))
        with torch.no_grad():
            features = learner.algorithm.features(learner.state, inputs, batch).flatten(1, 2)
            logits = learner.algorithm.network.last(learner.state, features)[..., :-1]
        log_probs = logits.log_softmax(dim=-1)[0].numpy()
        actions = batch["action"].ravel()
        chosen = log_probs[np.arange(len(actions)), actions]
        acted = actions != NO_ACTION
        assert np.allclose(chosen[acted], batch["log_prob"].ravel()[acted], atol=1e-5)


@pytest.mark.parametrize("kind", QUICK)
def test_a_look_beyond_a_cut_is_not_a_step_to_learn_from(make, kind):
    environment = make(f"agents=[{{kind: {kind}, network: gru, batch_size: 200}}]")
    for _ in range(2):
        environment.collect_epoch()
    learner = environment.learners[0][1]
    batch = {name: array[:1] for name, array in learner.draw(1).items()}
    looks = batch["action"] == NO_ACTION
    assert looks.any()
    algorithm, losses = learner.algorithm, []
    for wild in (0, 1e6):
        for name in {"reward", "advantage", "return", "log_prob"} & set(batch):
            batch[name] = np.where(looks, np.float32(wild), batch[name])
        leaves = leaves_of(learner.state, algorithm.weights)
        losses.append(algorithm.loss(leaves, learner.state, batch).item())
    assert losses[0] == losses[1]


def test_turns_that_cannot_be_cut_evenly_are_all_learned_from(make):
    environment = make("agents=[{kind: ppo, network: gru}]", "world_settings.max_turns=21")
    environment.collect_epoch()
    learner = environment.learners[0][1]
    newest = learner.memory.newest(21)
    cut = _sequences(newest | {"turn": np.arange(21 * 4).reshape(21, 4)}, 6)
    assert cut["turn"].shape == (4 * 4, 6)
    assert np.array_equal(np.unique(cut["turn"]), np.arange(21 * 4))
    assert (np.diff(cut["turn"], axis=1) == 4).all()  # a copy's own, one after another
    assert np.array_equal(cut["carried"], newest["carried"].reshape(84, -1)[cut["turn"][:, 0]])


def test_a_memory_of_pictures_stays_within_its_megabytes(caplog):
    view = View((100, 100, 3), np.dtype(np.uint8))
    dqn = DoubleDQN(view, 2, DoubleDQNSettings(network="cnn", memory_mb=30))
    assert dqn.memory_turns(copies=5, turns_per_training=10) == 199
    assert "memory_mb=30 leaves room for 999 of them, not 100,000" in caplog.text


class Pixels(ParallelEnv):
    """Two agents see noise, 84 x 84 pixels."""

    metadata: ClassVar = {"name": "pixels"}
    possible_agents: ClassVar = ["a", "b"]

    def observation_space(self, agent):
        return spaces.Box(0, 255, (84, 84, 3), np.uint8)

    def action_space(self, agent):
        return spaces.Discrete(3)

    def reset(self, seed=None, options=None):
        self.agents, self._rng = list(self.possible_agents), np.random.default_rng(seed)
        return self._all(self._noise), self._all(dict)

    def step(self, actions):
        false, reward = self._all(lambda: False), self._all(lambda: 1.0)
        return self._all(self._noise), reward, false, false, self._all(dict)

    def _all(self, make):
        return {agent: make() for agent in self.agents}

    def _noise(self):
        return self._rng.integers(0, 256, (84, 84, 3), np.uint8)


@pytest.mark.parametrize("kind", QUICK)
def test_pixels_of_pettingzoo_are_learned_from_by_a_cnn(kind):
    world = PettingZooWorld(Pixels, copies=2, seed=1, max_turns=10)
    settings = [f"agents=[{kind}]", f"{kind}.network=cnn", f"{kind}.batch_size=8"]
    with make_environment(world, [*settings, f"{kind}.replay_ratio=0.2"]) as environment:
        results = environment.run_experiment(2)
    assert all(np.isfinite(loss) for loss in results[-1].losses.values())
    assert len(results[-1].losses) == 2
