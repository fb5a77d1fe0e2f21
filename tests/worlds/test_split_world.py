"""Copies that are stepped by several workers: the same numbers, whatever happens to a worker."""

import os
import signal
from textwrap import dedent

import numpy as np
import pytest
import torch

from keisei.errors import KeiseiError
from keisei.worlds import make_environment, shard_workers
from tests.worlds.conftest import SMALL, weights_of

WORKERS = "parallel.world_workers=3"
WORLDS = {
    "treasure_hunt": ["turn_order=random"],
    "cleanup": ["world_settings.facing=true", "agents=[ppo]"],
    "pettingzoo:mpe2.simple_spread_v3": ["agents=[ppo, iqn, random]"],
    "pettingzoo:mpe2.simple_adversary_v3": [
        "agents=[ppo]",
        "world_settings.continuous_actions=true",
    ],
}
# An environment that is cut off by time, in some copies before others.
UNEVEN = """
    import numpy as np
    from gymnasium import spaces
    from pettingzoo import ParallelEnv

    class Uneven(ParallelEnv):
        metadata = {"name": "uneven"}
        possible_agents = ["one", "other"]

        def observation_space(self, agent):
            return spaces.Box(-1, 1, (2,), np.float32)

        def action_space(self, agent):
            return spaces.Discrete(2)

        def reset(self, seed=None, options=None):
            self.agents, self.rng = list(self.possible_agents), np.random.default_rng(seed)
            self.left = int(self.rng.integers(2, 9))
            return self._answer(), {}

        def _answer(self):
            return {name: self.rng.random(2, np.float32) for name in self.agents}

        def step(self, actions):
            if actions.get("one") == 2:
                raise RuntimeError("nobody has two")
            self.left -= 1
            seen, cut = self._answer(), {name: self.left == 0 for name in self.agents}
            got = {name: float(actions[name]) for name in self.agents}
            no = dict.fromkeys(self.agents, False)
            if not self.left:
                self.agents = []
            return seen, got, no, cut, {}

    parallel_env = Uneven
"""


def of(world):
    """Settings that are small, for a world."""
    own = WORLDS.get(world, [])
    if not world.startswith("pettingzoo:"):
        return [*SMALL, *own]
    learners = [one for one in SMALL if not one.startswith("world_settings")]
    return [*learners, "world_settings={max_turns: 12}", *own]


def run(world, *overrides, epochs=3, on_turn=None):
    """What a short experiment comes to: results and weights."""
    with make_environment(world, [*of(world), *overrides]) as environment:
        environment.on_turn = on_turn and (lambda: on_turn(environment))
        results = environment.run_experiment(epochs)
        return results, weights_of(environment)


def assert_equal(first, second):
    for one, other in zip(first[0], second[0], strict=True):
        assert np.array_equal(one.returns, other.returns)
        assert one.measures == other.measures
        assert one.by_agent == other.by_agent
    for one, other in zip(first[1], second[1], strict=True):
        assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture
def uneven(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "uneven_env.py").write_text(dedent(UNEVEN))
    return "pettingzoo:uneven_env"


@pytest.mark.parametrize("world", WORLDS)
def test_any_number_of_workers_gives_the_numbers_of_one_process(world):
    assert_equal(run(world), run(world, WORKERS))


def test_so_it_is_where_episodes_are_cut_off_at_different_times_and_the_module_is_ones_own(uneven):
    for agents in ("agents=[ppo]", "agents=[{kind: double_dqn, network: gru}]"):
        assert_equal(run(uneven, agents), run(uneven, agents, WORKERS))


@pytest.mark.parametrize("world", ["cleanup", "pettingzoo:mpe2.simple_spread_v3"])
def test_a_worker_that_is_killed_changes_nothing(world, caplog):
    killed = []

    def kill(environment):
        if environment.turn == 18:
            process = environment.world.workers[1].process
            os.kill(process.pid, signal.SIGKILL)
            killed.append(process.pid)

    assert_equal(run(world), run(world, WORKERS, on_turn=kill))
    assert killed
    assert "was killed or crashed; another one takes its place" in caplog.text


def test_a_worker_that_hangs_is_replaced(monkeypatch, caplog):
    monkeypatch.setattr(shard_workers, "TURN_TIMEOUT", 2.0)

    def halt(environment):
        if environment.turn == 5:
            os.kill(environment.world.workers[0].process.pid, signal.SIGSTOP)

    assert_equal(run("tag"), run("tag", WORKERS, on_turn=halt))
    assert "did not answer within 2 s" in caplog.text


@pytest.mark.parametrize(("before", "after"), [([WORKERS], []), ([], [WORKERS])])
def test_a_run_goes_on_with_another_number_of_workers(before, after):
    world = "stag_hunt"
    with make_environment(world, [*of(world), *before]) as first:
        first.run_experiment(2)
        state = first.state_dict()
    with make_environment(world, [*of(world), *after]) as second:
        second.load_state_dict(state)
        went_on = second.run_experiment(2), weights_of(second)
    results, weights = run(world, epochs=4)
    assert_equal((results[2:], weights), went_on)


def test_no_worker_is_left_when_the_environment_is_closed():
    with make_environment("tag", [*SMALL, WORKERS]) as environment:
        environment.run_experiment(1)
        processes = [worker.process for worker in environment.world.workers]
    assert len(processes) == 3
    assert all(process.poll() is not None for process in processes)


def test_what_goes_wrong_in_a_world_is_an_error_and_no_reason_to_try_again(uneven, caplog):
    with make_environment(uneven, ["copies=4", WORKERS, "agents=[random]"]) as environment:
        environment.world.begin_turn()
        with pytest.raises(KeiseiError, match="RuntimeError: nobody has two"):
            environment.world.step(np.full((2, 4), 2))
    assert "another one" not in caplog.text


def test_agents_that_act_one_after_another_need_one_process():
    with pytest.raises(KeiseiError, match="turn_order=sequential"):
        make_environment("tag", [*SMALL, WORKERS, "turn_order=sequential"])
