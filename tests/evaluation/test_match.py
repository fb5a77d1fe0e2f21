import numpy as np
import pytest

from keisei.core.policy import Evaluation, segment_log_softmax
from keisei.evaluation.match import play_games
from keisei.evaluation.players import GreedyPlayer, PolicyPlayer, RandomPlayer, Turns
from keisei.shogi import PolicyOutputMapper, ShogiGame

MATE = PolicyOutputMapper().usi_to_action("G*5b", "black")
MATE_IN_ONE = "4k4/9/4G4/9/9/9/9/9/4K4 b G 1"


def prefers(action):
    """A policy that finds one action a thousand times as likely as each other."""

    def policy(positions):
        scores = np.where(positions.legal == action, np.float32(7), np.float32(0))
        values = np.zeros(len(positions), np.float32)
        return Evaluation(segment_log_softmax(scores, positions.offsets), values)

    return policy


def test_a_row_whose_game_has_ended_plays_the_next_one_until_all_are_played():
    openings = [["7g7f"], ["2g2f"], ["5g5f"]]
    match = play_games(
        GreedyPlayer(1), RandomPlayer(2), 12, seed=3, openings=openings, first_number=4, at_once=4
    )
    assert sorted(game.number for game in match.games) == list(range(4, 16))
    assert match.played == match.different_games == 12
    for game in match.games:
        assert game.first_is_black == (game.number % 2 == 0)
        assert game.moves[0] == openings[game.number // 2 % 3][0]


def test_who_mates_wins_with_black_and_the_other_wins_with_black_too():
    mater = PolicyPlayer(prefers(MATE), "mater", seed=1)
    result = play_games(mater, RandomPlayer(2), 2, start_sfens=[MATE_IN_ONE], move_limit=1)
    # The first game has the mater as Black. In the second, random has the mate in one and may miss.
    assert (result.first, result.second) == ("mater", "random")
    assert result.wins == 1
    assert result.played == 2
    assert [game.first_is_black for game in result.games] == [True, False]


def test_each_colour_is_had_in_half_of_the_games_and_every_game_is_counted_once():
    result = play_games(RandomPlayer(1), RandomPlayer(2), 20, seed=3)
    assert result.played == len(result.games) == sum(result.reasons.values()) == 20
    assert sum(game.first_is_black for game in result.games) == 10


def test_the_same_seeds_give_the_same_match():
    one, two = (play_games(RandomPlayer(1), GreedyPlayer(2), 10, seed=3) for _ in range(2))
    assert one.games == two.games


def test_taking_material_beats_random_moves():
    result = play_games(GreedyPlayer(1), RandomPlayer(2), 40, seed=1)
    assert result.wins > 3 * max(result.losses, 1)


def test_greedy_takes_the_most_valuable_piece():
    game = ShogiGame("4k4/9/9/9/3r1p3/4S4/9/9/4K4 b - 1")
    turns = Turns.of([game.observation()], [game.legal_actions()])
    at = GreedyPlayer(1).choose(turns)[0]
    assert PolicyOutputMapper().action_to_usi(int(turns.legal[at]), "black") == "5f6e"


@pytest.mark.parametrize(("temperature", "least"), [(0.0, 1.0), (0.5, 0.99), (1.0, 0.9)])
def test_a_lower_temperature_follows_the_likeliest_move_more_closely(temperature, least):
    player = PolicyPlayer(prefers(3), "p", seed=1, temperature=temperature)
    turns = Turns.of(np.zeros((400, 100), np.uint8), [np.arange(5)] * 400)
    chosen = turns.legal[player.choose(turns)]
    assert (chosen == 3).mean() >= least
