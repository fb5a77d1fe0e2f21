import numpy as np
import pytest
from pettingzoo.test import api_test, seed_test

from keisei.shogi import NUM_ACTIONS, PolicyOutputMapper
from keisei.shogi.pettingzoo_env import env


@pytest.mark.filterwarnings("ignore::UserWarning")  # advice on names and kinds of spaces
def test_pettingzoos_own_api_test_passes():
    api_test(env(move_limit=40), num_cycles=200)


def test_pettingzoos_own_seed_test_passes():
    seed_test(lambda: env(move_limit=40), num_cycles=100)


def play(shogi, choose):
    returns = {"black": 0.0, "white": 0.0}
    for agent in shogi.agent_iter(max_iter=2000):
        seen, reward, over, cut, info = shogi.last()
        returns[agent] += reward
        shogi.step(None if over or cut else choose(seen["action_mask"]))
    return returns, info


def test_a_mate_gives_the_winner_one_and_the_loser_minus_one():
    shogi = env(sfen="4k4/9/4G4/9/9/9/9/9/4K4 b G 1")
    shogi.reset()
    mate = PolicyOutputMapper().usi_to_action("G*5b", "black")
    returns, info = play(shogi, lambda mask: mate)
    assert returns == {"black": 1.0, "white": -1.0}
    assert info["outcome"] == "black wins by checkmate"


def test_random_games_are_zero_sum():
    rng = np.random.default_rng(1)
    shogi = env(move_limit=300)
    for _ in range(3):
        shogi.reset()
        returns, _ = play(shogi, lambda mask: int(rng.choice(np.flatnonzero(mask))))
        assert sum(returns.values()) == 0


def test_an_illegal_action_ends_the_game_against_its_player():
    shogi = env()
    shogi.reset()
    assert shogi.observe("white")["action_mask"].sum() == 0
    shogi.step(NUM_ACTIONS - 1)
    assert shogi.rewards["black"] == -1
