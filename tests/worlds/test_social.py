"""What agents learn from beside their own reward."""

import numpy as np
import pytest

from keisei.worlds import make_environment
from keisei.worlds.social import SocialRewards, SocialSettings


def felt(turns, over=(), **settings):
    """What three agents feel in the last of these turns, in one copy."""
    social = SocialRewards(SocialSettings(**settings), 3, 1)
    for number, rewards in enumerate(turns):
        answer = social.felt(np.array(rewards, np.float32)[:, None])
        social.end(np.array([number in over]))
    return answer[:, 0].tolist()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [6, 0, 3]),
        ({"shared": 1}, [3, 3, 3]),
        ({"shared": 0.5}, [4.5, 1.5, 3]),
        ({"orientation": 90}, [1.5, 4.5, 3]),
        ({"orientation": 45}, [7.5 * 0.5**0.5, 4.5 * 0.5**0.5, 6 * 0.5**0.5]),
        ({"envy": 1}, [6, -4.5, 1.5]),
        ({"guilt": 1}, [1.5, 0, 1.5]),
        ({"envy": 2, "guilt": 1}, [1.5, -9, -1.5]),
    ],
    ids=str,
)
def test_rewards_are_felt_as_the_settings_say(settings, expected):
    assert felt([[6, 0, 3]], **settings) == pytest.approx(expected, abs=1e-5)


def test_who_had_more_before_is_remembered_until_the_episode_is_over():
    turns = [[4, 0, 0], [0, 0, 0]]
    assert felt(turns, guilt=1, fading=0.5) == [-2, 0, 0]
    assert felt(turns, over=[0], guilt=1, fading=0.5) == [0, 0, 0]


@pytest.mark.parametrize("parallel", ["true", "false"])
def test_agents_learn_from_what_they_feel_and_runs_measure_what_the_world_gave(make, parallel):
    options = [f"parallel.enabled={parallel}", "social.shared=1", "world_settings.spawn_chance=1"]
    environment = make(*options)
    (result,) = environment.run_experiment(1)
    first, second = (agent.model.memory.newest(21)["reward"] for agent in environment.agents)
    assert np.array_equal(first, second)
    assert result.returns[0] != result.returns[1]
    assert first.sum(axis=0).mean() == pytest.approx(result.returns.mean(), abs=1e-4)


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(Exception, match=r"social\.shared"):
        make_environment("tag", ["social.shared=2"])
