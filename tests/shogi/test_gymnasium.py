"""Shogi as Gymnasium has it: one player, and an opponent that is part of the environment."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from keisei.shogi import NUM_ACTIONS, PolicyOutputMapper
from keisei.shogi.gymnasium_env import ShogiEnv

MATE = "4k4/9/4G4/9/9/9/9/9/4K4 b G 1"
BEFORE_MATE = "4k4/9/4G4/p8/9/9/9/9/4K4 w G 1"


def make(**settings):
    return gymnasium.make("keisei/Shogi-v0", **settings)


def episode(env, seed):
    planes, info = env.reset(seed=seed)
    env.action_space.seed(seed)
    over, cut, seen = False, False, [planes]
    while not (over or cut):
        planes, reward, over, cut, info = env.step(env.action_space.sample(info["action_mask"]))
        seen.append(planes)
    return np.stack(seen), reward, over, info


@pytest.mark.filterwarnings("ignore::UserWarning")  # advice on spaces, and on its own wrappers
def test_gymnasiums_own_check_passes():
    check_env(ShogiEnv(move_limit=40), skip_render_check=True)


def test_episodes_follow_from_their_seed_and_end_with_an_outcome():
    env = make(move_limit=60)
    first, *_ = episode(env, 1)
    again, reward, over, info = episode(env, 1)
    assert np.array_equal(first, again)
    assert info["outcome"]
    assert reward == 0 or over
    assert not info["action_mask"].any()
    assert not np.array_equal(first[:2], episode(env, 2)[0][:2])


@pytest.mark.parametrize("side", ["black", "white"])
def test_the_player_to_move_is_always_the_side_that_was_asked_for(side):
    asked = []

    def opponent(game):
        asked.append(game.turn)
        return game.legal_usi()[0]

    planes, *_ = episode(make(opponent=opponent, side=side, move_limit=20), 1)
    assert set(asked) == {"white" if side == "black" else "black"}
    assert (planes[:-1, 42] == (side == "white")).all()


def test_without_a_side_each_game_draws_one():
    env = make()
    assert {env.reset(seed=seed)[1]["side"] for seed in range(10)} == {"black", "white"}


def test_a_mate_wins_and_being_mated_loses():
    mate = PolicyOutputMapper().usi_to_action("G*5b", "black")
    env = make(sfen=MATE, side="black")
    env.reset(seed=1)
    assert env.step(mate)[1:4] == (1.0, True, False)
    env = make(sfen=BEFORE_MATE, side="white", opponent=lambda game: "G*5b")
    env.reset(seed=1)
    pawn = PolicyOutputMapper().usi_to_action("9d9e", "white")
    assert env.step(pawn)[1:4] == (-1.0, True, False)


def test_an_illegal_action_loses():
    env = make()
    env.reset(seed=1)
    _, reward, over, cut, info = env.step(NUM_ACTIONS - 1)
    assert (reward, over, cut, info["outcome"]) == (-1.0, True, False, "illegal action")


def test_the_move_limit_cuts_a_game_off():
    env = make(move_limit=2, side="black", render_mode="ansi")
    _, info = env.reset(seed=1)
    *_, over, cut, info = env.step(env.action_space.sample(info["action_mask"]))
    assert (over, cut, info["outcome"]) == (False, True, "draw by move limit")
    assert "後手" in env.unwrapped.render()


def test_a_side_that_is_none_is_refused():
    with pytest.raises(ValueError, match="black, white or None"):
        ShogiEnv(side="red")
