"""Who plays next, when there is enough, and what follows a failure: without a process."""

from collections import Counter

import pytest

from keisei.selfplay.plan import FailurePolicy, ParallelError, Tally, UpdatePlan


def play(plan, playing, order, games=lambda shard, number: 0):
    """Play by the plan, where those who come first in `order` are always quicker."""
    tally, rollouts = Tally(), []
    while not plan.is_met(playing, tally):
        wanted = plan.to_begin(playing, tally)
        shard = min(wanted, key=order.index)
        tally.finished[shard] += 1
        tally.steps += plan.rollout_steps
        tally.games[shard] += games(shard, tally.finished[shard])
        rollouts.append((tally.finished[shard], shard))
    return sorted(rollouts)


@pytest.mark.parametrize("steps", [1, 100, 300, 301, 1000])
def test_in_sync_mode_the_same_rollouts_are_played_whoever_is_quicker(steps):
    plan, orders = UpdatePlan(steps, rollout_steps=100), ([0, 1, 2], [2, 1, 0], [1, 2, 0])
    results = [play(plan, [0, 1, 2], order) for order in orders]
    assert results[0] == results[1] == results[2]
    assert {shard for _, shard in results[0]} == {0, 1, 2}  # everybody plays
    assert 100 * len(results[0]) >= steps
    assert len(results[0]) == max(3, -(-steps // 100))  # and nobody more than is needed


def test_a_shard_plays_until_its_games_have_ended_and_the_others_do_not_wait_for_more():
    plan = UpdatePlan(steps=200, rollout_steps=100, games=4)
    rollouts = play(plan, [0, 1], [0, 1], lambda shard, _: 4 if shard == 0 else 1)
    assert Counter(shard for _, shard in rollouts) == {0: 1, 1: 4}


def test_what_is_in_work_is_not_begun_twice_and_is_waited_for():
    plan = UpdatePlan(steps=200, rollout_steps=100)
    tally = Tally(finished=Counter({0: 1}), in_work=Counter({1: 1}), steps=100)
    assert plan.to_begin([0, 1], tally) == []
    assert not plan.is_met([0, 1], tally)


def test_those_who_are_left_take_over_the_share_of_one_who_is_away():
    plan = UpdatePlan(steps=400, rollout_steps=100)
    tally = Tally(finished=Counter({0: 2, 1: 1}), steps=300)
    assert plan.to_begin([0, 1], tally) == [1]
    assert plan.to_begin([0], tally) == [0]  # what the other one has finished counts


def test_in_async_mode_everybody_plays_and_the_first_who_are_ready_are_enough():
    plan = UpdatePlan(steps=200, rollout_steps=100, mode="async")
    tally = Tally(finished=Counter({0: 2}), in_work=Counter({1: 1}), steps=200)
    assert plan.to_begin([0, 1], tally) == [0, 1]
    assert plan.is_met([0, 1], tally)


def test_games_in_which_a_worker_fails_twice_in_a_row_are_given_up():
    policy = FailurePolicy(max_restarts=9)
    fails = [policy.failed(0, "worker", "SIGKILL", blames_games=True) for _ in range(2)]
    assert fails == [False, True]
    policy = FailurePolicy(max_restarts=9)
    for _ in range(3):
        assert not policy.failed(0, "worker", "SIGKILL", blames_games=True)
        policy.finished(0)


def test_failures_that_games_are_not_to_blame_for_count_only_as_restarts():
    policy = FailurePolicy(max_restarts=9)
    policy.failed(0, "worker", "SIGSEGV", blames_games=True)
    assert not any(policy.failed(0, "worker", "SIGKILL", blames_games=False) for _ in range(5))
    assert policy.failed(0, "worker", "SIGSEGV", blames_games=True)
    assert policy.restarts == {0: 7}


def test_too_many_failures_and_workers_that_never_start_are_the_end():
    policy = FailurePolicy(max_restarts=2)
    for shard in (0, 1):
        policy.failed(shard, "worker", "SIGKILL", blames_games=False)
    with pytest.raises(ParallelError, match="max_restarts"):
        policy.failed(2, "worker 2", "SIGKILL", blames_games=False)
    policy = FailurePolicy(max_restarts=99)
    for _ in range(2):
        policy.failed_to_start("worker", "exit code 1")
    policy.started()
    for _ in range(2):
        policy.failed_to_start("worker", "exit code 1")
    with pytest.raises(ParallelError, match="before it was ready"):
        policy.failed_to_start("worker", "exit code 1")
