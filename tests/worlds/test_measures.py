"""What a run keeps of its episodes, beside the returns."""

import numpy as np
import pytest
from typer.testing import CliRunner

from keisei.cli import app
from keisei.runs.metrics import MetricsReader
from keisei.worlds import Agent, Environment, load_world_config
from keisei.worlds.cleanup import Cleanup
from keisei.worlds.measures import Episodes
from keisei.worlds.models import ScriptedModel
from keisei.worlds.tag import Tag

NOWHERE = np.zeros(2, np.bool_)


def add(episodes, *rewards, over=NOWHERE, away=None):
    """A turn of two copies: the rewards of each agent in both."""
    episodes.add(np.array(rewards, np.float32), np.asarray(over), away)


def test_the_four_measures_are_those_of_the_literature():
    episodes = Episodes(num_agents=2, copies=2)
    add(episodes, [1, 0], [0, 0], away=np.array([[True, False], [True, False]]))
    add(episodes, [0, -1], [0, 0])
    add(episodes, [1, 0], [2, 0])
    add(episodes, [0, 0], [0, 0])
    assert episodes.returns().tolist() == [0.5, 1]
    assert episodes.measures() == {
        "efficiency": (4 / 4 + -1 / 4) / 2,
        "equality": 1,  # of the first copy: in the second, nobody gained
        "sustainability": (2 + 3) / 2,  # agent 0 gained in turns 1 and 3, agent 1 in turn 3
        "peace": (1.5 + 2) / 2,  # in one of four turns both were away, in one copy
    }


def test_an_episode_that_the_epochs_end_cuts_off_counts_only_if_it_began_with_the_epoch():
    episodes = Episodes(num_agents=1, copies=2)
    add(episodes, [1, 1])
    add(episodes, [5, 1], over=[True, False])
    add(episodes, [100, 1])
    assert episodes.returns().tolist() == [(6 + 3) / 2]
    assert episodes.measures()["efficiency"] == (6 / 2 + 3 / 3) / 2


def test_a_new_epoch_counts_from_the_beginning():
    episodes = Episodes(num_agents=1, copies=2)
    add(episodes, [7, 7])
    episodes.begin()
    add(episodes, [1, 2])
    assert episodes.returns().tolist() == [1.5]


def test_who_pauses_in_tag_disturbs_the_peace():
    agents = [Agent(i, ScriptedModel(lambda seen: np.zeros(len(seen), np.int64))) for i in range(4)]
    world = Tag(copies=2, seed=1, pillars=0)
    peaceful = Environment(world, agents, load_world_config("tag")).run_experiment(1)[0]
    assert peaceful.measures["peace"] == 4  # all walk north; nobody meets anybody
    world.reset()
    world.begin_turn()
    world.pause[:] = 3
    assert world.timed_out().sum() == 2


def test_a_world_counts_who_cleaned():
    world = Cleanup(copies=2, seed=1, num_agents=2)
    world.reset()
    for agent in range(2):
        world.positions[agent] = world.first_cell + world.cell(3 + agent, 2)
    world.put("river", world.everywhere(world._river))
    world.put("dirt", world.first_cell + world.cell(2, 2))
    clean, stay = world.actions.index("clean"), world.actions.index("stay")
    world.step(np.array([[clean] * 2, [stay] * 2]))
    assert world.metrics()["cleaned"].tolist() == [[1, 1], [0, 0]]
    assert world.metrics()["dirt"].tolist() == [0, 0]


@pytest.mark.parametrize("mode", ["parallel.enabled=false", "parallel.async_learning=true"])
def test_every_run_keeps_them_for_each_agent_and_for_all(tmp_path, monkeypatch, mode):
    monkeypatch.chdir(tmp_path)
    settings = [
        mode,
        "copies=2",
        "epochs=3",
        "world_settings.max_turns=20",
        "world_settings.num_agents=3",
        "agents=[ppo, double_dqn, random]",
        *(f"{kind}.{what}" for kind in ("ppo", "double_dqn") for what in ("hidden=[8]",)),
        "ppo.replay_ratio=0.05",
        "double_dqn.replay_ratio=0.05",
        "parallel.use_threads=true",
    ]
    words = [part for setting in settings for part in ("-o", setting)]
    done = CliRunner().invoke(app, ["worlds", "train", "cleanup", "--name", "a", *words])
    assert done.exit_code == 0, done.stderr
    with MetricsReader(tmp_path / "runs/a/metrics.sqlite") as reader:
        names = set(reader.names())
        assert {"efficiency", "peace", "dirt", "cleaned", "entropy", "kl", "q", "epsilon"} <= names
        assert {"cleaned agent_2", "entropy agent_0", "kl agent_0", "value agent_0"} <= names
        assert {"q agent_1", "epsilon agent_1", "loss agent_1"} <= names
        assert not {"q agent_0", "entropy agent_1", "epsilon agent_2"} & names
        epsilons = [value for _, value in reader.series("epsilon")]
        assert epsilons == sorted(set(epsilons), reverse=True)
        assert all(0 < value <= np.log(6) for _, value in reader.series("entropy"))
    assert (tmp_path / "runs/a/learning_curve.png").stat().st_size > 10_000


def test_a_model_of_ones_own_may_tell_numbers_too():
    class Counting(ScriptedModel):
        def metrics(self):
            return {"steps made": 7}

    agents = [Agent(i, Counting(lambda seen: np.zeros(len(seen), np.int64))) for i in range(4)]
    result = Environment(Tag(), agents, load_world_config("tag")).run_experiment(1)[0]
    assert result.by_agent == {"steps made": dict.fromkeys(range(4), 7.0)}
