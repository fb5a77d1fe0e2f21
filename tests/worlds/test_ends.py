"""Where an episode ends, and where time only cuts it off."""

import numpy as np
import pytest

from keisei.errors import KeiseiError
from keisei.worlds import Agent, Entity, Environment, World, load_world_config, make_environment
from keisei.worlds.pettingzoo_env import WorldEnv
from keisei.worlds.pettingzoo_world import PettingZooWorld


class Wage(World):
    """One turn is like the other, and each is worth 1, whatever the agent does.

    So what is to come is worth 1 / (1 - gamma): 100, at a gamma of 0.99.
    """

    name = "wage"
    entities = (Entity("ground", "."), Entity("agent", "A", layer=1, solid=True))
    actions = ("stay", "wait")

    def populate(self):
        self.place_agents(self.inside)

    def act(self, agent, actions):
        self.rewards[agent] += 1


class Quit(Wage):
    """The same, but every turn is the end of an episode."""

    name = "quit"

    def act(self, agent, actions):
        super().act(agent, actions)
        self.done[:] = True


SETTINGS = {"num_agents": 1, "height": 3, "width": 3, "vision": 1, "max_turns": 5}
QUICK = [
    "double_dqn={gamma: 0.99, hidden: [1], learning_rate: 0.3, target_step: 1, replay_ratio: 2.5}",
    "double_dqn.batch_size=8",
    "ppo={gamma: 0.99, hidden: [1], learning_rate: 0.3, replay_ratio: 2.5, batch_size: 8}",
    "ppo.max_grad_norm=1000",
]


def value_learned(world, kind):
    """What a learner thinks that the future is worth."""
    with make_environment(world, [*QUICK, f"agents=[{kind}]"]) as environment:
        environment.run_experiment(300 // world.max_turns)
        learner = environment.agents[0].model
        scores, _ = learner._answer(environment.world.pov(0))
    return scores[0, -1]  # of PPO, the value; of double DQN, that of either action


@pytest.mark.parametrize("kind", ["double_dqn", "ppo"])
@pytest.mark.parametrize("imported", [False, True], ids=["grid", "pettingzoo"])
def test_what_is_cut_off_by_time_counts_as_if_it_went_on(kind, imported):
    world = Wage(copies=2, seed=1, **SETTINGS)
    if imported:
        name = "tests.worlds.test_ends:Wage"
        world = PettingZooWorld(lambda: WorldEnv(name, SETTINGS), copies=2, max_turns=10)
    assert 50 < value_learned(world, kind) < 110  # if a cut were an end: 5 at most, or 10


@pytest.mark.parametrize("kind", ["double_dqn", "ppo"])
def test_nothing_counts_beyond_a_true_end(kind):
    assert value_learned(Quit(copies=2, seed=1, **SETTINGS), kind) == pytest.approx(1, abs=0.2)


def test_an_export_says_which_of_both_it_was():
    cut = [(False, False)] * 4 + [(False, True)]
    for name, expected in (("Wage", cut), ("Quit", [(True, False)])):
        env = WorldEnv(f"tests.worlds.test_ends:{name}", SETTINGS)
        env.reset(seed=1)
        said = []
        while env.agents:
            _, _, terminated, truncated, _ = env.step({"agent_0": 0})
            said.append((terminated["agent_0"], truncated["agent_0"]))
        assert said == expected


class Diary:
    """A model that keeps what it is told, and knows nothing of cuts."""

    def __init__(self):
        self.ends = []

    def act(self, observations):
        return np.zeros(len(observations), np.int64)

    def remember(self, state, action, reward, done):
        self.ends.append(done.tolist())

    def train_step(self):
        return None

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


def test_to_a_model_that_knows_no_cuts_one_is_an_end():
    world, model = Wage(copies=2, seed=1, **SETTINGS), Diary()
    Environment(world, [Agent(0, model)], load_world_config("wage")).run_experiment(1)
    assert model.ends == [[False, False]] * 4 + [[True, True]]


class Hill(World):
    """An episode ends when the agent reaches the top row; where it starts is drawn."""

    name = "hill"
    entities = (
        Entity("grass", "."),
        Entity("wall", "#", solid=True),
        Entity("agent", "A", layer=1, solid=True),
    )
    actions = ("up", "stay")
    state_names = (*World.state_names, "climbed")

    def __init__(self, copies=1, seed=0, **settings):
        super().__init__(copies, seed, **settings)
        self.climbed = np.zeros(copies, np.int64)  # rows, in this episode

    def populate(self):
        self.build_walls()
        self.climbed[:] = 0
        self.place_agents(self.inside)

    def act(self, agent, actions):
        self.climbed += self.walk(agent, self.ahead(agent, actions))
        self.done |= self.positions[agent] < self.first_cell + self.cell(2, 0)


def climb(copies, turns=30):
    """What each copy sees, and where it ends, turn by turn."""
    world = Hill(copies, 3, num_agents=1, height=8, width=8, vision=1, max_turns=1000)
    seen, ends = [], []
    for turn in range(turns):
        world.begin_turn()
        seen.append(np.concatenate([world.pov(0), world.climbed[:, None]], axis=1))
        _, dones, truncated = world.step(np.full((1, copies), int(turn % 4 == 0)))
        ends.append(dones[0])
        assert not truncated.any()
    return np.stack(seen), np.stack(ends)


def test_an_episode_that_ends_in_one_copy_begins_again_there_and_nowhere_else():
    (few_seen, few_ends), (seen, ends) = climb(1), climb(9)
    assert len(set(ends.argmax(axis=0).tolist())) > 1  # the copies end in different turns
    assert np.array_equal(few_seen, seen[:, :1])
    assert np.array_equal(few_ends, ends[:, :1])
    climbed = seen[:, :, -1]
    assert (climbed[1:][ends[:-1]] == 0).all()
    assert (np.diff(climbed, axis=0)[~ends[:-1]] >= 0).all()


def test_state_that_cannot_begin_again_in_one_copy_is_named():
    class Wrong(Hill):
        def __init__(self, *arguments, **settings):
            super().__init__(*arguments, **settings)
            self.climbed = np.zeros((self.copies, 5), np.int64)

        def act(self, agent, actions):
            self.done[0] = True

    world = Wrong(copies=2, num_agents=1)
    world.begin_turn()
    world.step(np.zeros((1, 2), np.int64))
    with pytest.raises(KeiseiError, match="climbed must have the copies as its last axis"):
        world.begin_turn()
