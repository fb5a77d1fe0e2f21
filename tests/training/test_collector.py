"""Rollouts on their way to the learner: each is handed over once."""

import pytest

from keisei.core.rollout import empty_rollout
from keisei.training.parallel.experience_collector import ExperienceCollector
from keisei.training.parallel.messages import RolloutDone

STEPS = 8  # in a rollout


@pytest.fixture
def collector():
    """One with five rollouts of two workers, whose versions tell them apart."""
    collector = ExperienceCollector(max_policy_lag=4)
    for version, worker in enumerate([0, 1, 1, 0, 1]):
        rollout = empty_rollout(STEPS, 1)
        rollout.version = version
        collector.accept(worker, RolloutDone(None, version, [], {}, rollout=rollout))
    return collector


def versions(taken):
    return [one.rollout.version for one in taken]


@pytest.mark.parametrize("steps", [1, STEPS, STEPS + 1, 2 * STEPS, 3 * STEPS - 1])
def test_taken_a_few_at_a_time_every_rollout_comes_once_and_the_oldest_first(collector, steps):
    taken = []
    while collector.waiting:
        some = collector.take(5, steps)
        assert len(some) == -(-steps // STEPS) or not collector.waiting
        taken += sorted(versions(some))
    assert taken == [0, 1, 2, 3, 4]


def test_all_at_once_come_in_order_of_round_and_worker(collector):
    assert versions(collector.take(5)) == [0, 1, 3, 2, 4]
    assert collector.lags == [5, 4, 2, 3, 1]
    assert not collector.waiting


def test_only_those_that_are_too_old_are_dropped_and_they_are_counted(collector):
    collector.drop_old(version=6)
    assert versions(collector.waiting) == [2, 3, 4]
    assert collector.totals["dropped_rollouts"] == 2
    assert collector.totals["rollouts"] == 5
