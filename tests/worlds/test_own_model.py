"""Models of the user's own: any object with the documented methods, by hand or by its name."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from keisei.cli import app
from keisei.errors import KeiseiError
from keisei.runs.checkpoint import CheckpointStore
from keisei.worlds import Agent, Environment, ParallelEnvironment, load_world_config, make_world
from keisei.worlds.models import Model, ScriptedModel
from tests.docs.pages import ROOT, blocks

LINEAR_Q = blocks(ROOT / "docs/worlds.md", "python")[1]
TINY = ["copies=4", "world_settings.max_turns=20", "ppo.hidden=[8]", "ppo.batch_size=16"]
OPTIONS = [part for setting in TINY for part in ("-o", setting)]
MIXED = "agents=[{kind: mine:LinearQ, epsilon: 0.3}, ppo]"


def keisei(*arguments):
    return CliRunner().invoke(app, ["worlds", *arguments])


@pytest.fixture
def folder(harvest_folder):
    """The current folder, with the model of the page as `mine.py`."""
    (harvest_folder / "mine.py").write_text(LINEAR_Q, encoding="utf-8")
    return harvest_folder


def saved_models(name):
    _, state = CheckpointStore(Path("runs") / name / "checkpoints").latest()
    return state["environment"]["models"]


def test_a_model_of_ones_own_is_trained_saved_and_resumed_exactly(folder):
    for name, epochs in (("cut", 2), ("whole", 5)):
        made = keisei(
            "train", "tag", "--name", name, *OPTIONS, "-o", MIXED, "-o", f"epochs={epochs}"
        )
        assert made.exit_code == 0, made.stderr
    done = keisei("train", "--resume", "cut", "--trust", "-o", "epochs=5")
    assert done.exit_code == 0, done.stderr
    cut, whole = saved_models("cut"), saved_models("whole")
    assert (whole[0]["weights"] != 0).any()
    assert np.array_equal(cut[0]["weights"], whole[0]["weights"])
    assert all(np.array_equal(cut[1]["state"][n], x) for n, x in whole[1]["state"].items())


def test_it_is_watched_and_swept(folder):
    settings = [*OPTIONS, "-o", "epochs=2", "-o", MIXED]
    trained = keisei("train", "tag", "--name", "a", *settings)
    assert "look at it with: keisei worlds watch a --trust" in trained.stdout
    assert "returns: agent 0" in keisei("watch", "a", "--trust").stdout
    for epochs in ("2", "3"):  # the second goes on with the first
        swept = keisei("sweep", "tag", "--seeds", "1", *settings, "-o", f"epochs={epochs}")
        assert swept.exit_code == 0, swept.stderr


@pytest.mark.parametrize("command", ["watch", "train -o epochs=3 --resume"])
def test_a_model_that_only_a_runs_settings_name_is_not_imported(folder, command):
    settings = [*OPTIONS, "-o", "epochs=1", "-o", MIXED]
    assert keisei("train", "tag", "--name", "a", *settings).exit_code == 0
    file = Path("runs/a/config.yaml")
    file.write_text(file.read_text().replace("mine:LinearQ", "payload:Mine"))
    Path("payload.py").write_text("open('it_ran', 'w')\n")
    done = keisei(*command.split(), "a")
    assert done.exit_code == 2
    assert "names the agents payload:Mine, which is code" in " ".join(done.stderr.split())
    assert not Path("it_ran").exists()


class Counter:
    """The least that can be trained: it has no base, and counts."""

    replay_ratio = 0.1

    def __init__(self):
        self.memory, self.steps = self, 0

    def add(self, state, action, reward, done):
        assert state.shape[0] == len(action) == len(reward) == len(done) == 4

    def take_action(self, observations):
        return np.zeros(len(observations))

    def train_step(self):
        self.steps += 1
        return 0.5

    def state_dict(self):
        return {"steps": self.steps}

    def load_state_dict(self, state):
        self.steps = state["steps"]


def environment_of(*models, kind=Environment):
    config = load_world_config(
        "treasure_hunt", overrides=[*TINY, f"world_settings.num_agents={len(models)}"]
    )
    agents = [Agent(index, model) for index, model in enumerate(models)]
    return kind(make_world(config), agents, config)


@pytest.mark.parametrize("kind", [Environment, ParallelEnvironment])
def test_agents_made_by_hand_are_trained_as_often_as_their_replay_ratio_says(kind):
    first, second = Counter(), Counter()
    second.replay_ratio = 0.03
    with environment_of(first, second, kind=kind) as environment:
        results = environment.run_experiment(2)
        assert (first.steps, second.steps) == (16, 4)  # of 2 x 20 x 4 experiences
        assert results[-1].losses == {0: 0.5, 1: 0.5}
        kept = environment.state_dict()
        environment.run_experiment(1)
        environment.load_state_dict(kept)
        environment.run_experiment(3)
    assert (first.steps, second.steps) == (40, 12)  # what is owed was kept, too


class Forgetful(Model):
    def act(self, observations):
        return np.zeros(len(observations), np.int64)


class Nothing:
    pass


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (Forgetful(), "it lacks memory with add(state, action, reward, done), or remember(...); "
                      "train_step() -> loss; state_dict; load_state_dict"),
        (Nothing(), "it lacks act(observations) -> actions; memory"),
    ],
)  # fmt: skip
def test_what_cannot_be_trained_is_refused_at_the_start_with_what_is_missing(model, said):
    with pytest.raises(KeiseiError) as refused:
        environment_of(model)
    assert f"agent_0: {type(model).__name__} cannot be trained: {said}" in str(refused.value)
    assert "learns = False" in str(refused.value)


def test_a_model_that_says_that_it_only_acts_needs_no_more():
    class Still:
        learns = False

        def act(self, observations):
            return [0] * len(observations)

    script = ScriptedModel(lambda observations: np.zeros(len(observations), np.int64))
    with environment_of(Still(), script) as environment:
        assert environment.run_experiment(1)[0].losses == {}
        environment.load_state_dict(environment.state_dict())


def test_too_few_actions_are_refused_by_name():
    model = Counter()
    model.take_action = lambda observations: [0]
    with environment_of(model) as environment, pytest.raises(KeiseiError, match=r"\(1,\).*\(4,\)"):
        environment.run_experiment(1)


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("mine:Nothing", "there is no class Nothing in"),
        ("{kind: mine:LinearQ, speed: 3}", "mine:LinearQ cannot be made with the settings"),
        ("{kind: mine:Unsaved}", "a checkpoint cannot hold Unsaved.state_dict()['rng']"),
        ("{kind: mine:Untrained}", "Untrained cannot be trained: it lacks train_step() -> loss"),
        ("{kind: ppo, gama: 0.9}", "agents.0.gama: there is no such setting: did you mean ppo.ga"),
        ("{kind: ppo, gamma: 2}", "agents.0.gamma: input should be less than or equal to 1"),
        ("{kind: random, gamma: 0.9}", "agents.0: a random agent has no settings"),
        ("{gamma: 0.9}", "the kind of an agent is double_dqn, iqn"),
        ("dqn", "the kind of an agent is double_dqn, iqn"),
    ],
)
def test_agents_that_cannot_be_made_are_refused_before_there_is_a_run(folder, agent, said):
    with Path("mine.py").open("a") as file:
        file.write(
            "\n\nclass Unsaved(LinearQ):\n    def state_dict(self):\n"
            "        return {'rng': self.rng}\n"
            "\n\nclass Untrained(LinearQ):\n    train_step = None\n"
        )
    done = keisei("train", "tag", *OPTIONS, "-o", f"agents=[{agent}]")
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())
    assert not Path("runs").exists()


def test_an_agent_may_have_settings_of_its_own(make):
    environment = make("agents=[double_dqn, {kind: double_dqn, gamma: 0.5, hidden: [8, 8]}]")
    first, second = (learner.algorithm.settings for _, learner in environment.learners)
    assert (first.gamma, first.hidden) == (0.95, [16])
    assert (second.gamma, second.hidden, second.batch_size) == (0.5, [8, 8], first.batch_size)
    environment.run_experiment(2)
    assert all(int(learner.state["steps"]) == 8 for _, learner in environment.learners)
