import numpy as np
import pytest

from keisei.shogi import (
    NUM_ACTIONS,
    IllegalActionError,
    ShogiGame,
    VectorShogi,
    planes,
)
from keisei.shogi.features import SIDE
from keisei.shogi.rules import HANDICAPS, START_SFEN
from keisei.shogi.vector_shogi import moves_in_state

MATE_IN_ONE = "4k4/9/4G4/9/9/9/9/9/4K4 b G 1"


def test_hundreds_of_random_games_equal_single_games_after_every_move():
    """Legal actions, bytes of the board, outcomes and rewards: all as `ShogiGame` has them."""
    games = VectorShogi(num_games=100, seed=7)
    singles = [ShogiGame() for _ in range(100)]
    finished = 0
    while finished < 120:
        legal, offsets = games.legal_actions()
        for g, single in enumerate(singles):
            mine = legal[offsets[g] : offsets[g + 1]]
            assert np.array_equal(mine, single.legal_actions())
            assert np.array_equal(games.observations[g], single.observation())
        actions = games.random_actions()
        result = games.step(actions)
        movers = [single.turn for single in singles]
        for g, single in enumerate(singles):
            single.step(actions[g])
            assert result.dones[g] == (single.outcome is not None)
            if not single.outcome:
                assert result.rewards[g] == 0
        for end in result.finished:
            single = singles[end.game]
            assert end.outcome == single.outcome
            assert end.usi_moves() == single.moves
            assert end.length == len(single.moves)
            win = {None: 0, movers[end.game]: 1}.get(end.outcome.winner, -1)
            assert result.rewards[end.game] == win
            singles[end.game] = ShogiGame()
            finished += 1


def test_every_legal_action_of_random_games_maps_to_its_move_and_back():
    games = VectorShogi(num_games=50, seed=3)
    for _ in range(200):
        games.step(games.random_actions())
        legal, offsets = games.legal_actions()
        g = int(offsets[-1]) % 50
        single = games.game(g)
        assert sorted(single.legal_actions()) == sorted(legal[offsets[g] : offsets[g + 1]])


def played(games: VectorShogi, steps: int) -> list[list[int]]:
    log = [[] for _ in range(games.num_games)]
    for _ in range(steps):
        actions = games.random_actions()
        games.step(actions)
        for g, action in enumerate(actions.tolist()):
            log[g].append(action)
    return log


def test_a_game_is_the_same_whatever_runs_beside_it():
    starts = [ShogiGame().sfen(), MATE_IN_ONE]
    alone = played(VectorShogi(1, seed=5, start_sfens=starts, first_stream=6), 300)
    among = played(VectorShogi(9, seed=5, start_sfens=starts), 300)
    assert alone[0] == among[6]
    assert among[5] != among[6]


def test_another_seed_plays_other_games():
    assert played(VectorShogi(2, seed=1), 20) != played(VectorShogi(2, seed=2), 20)


def test_the_mask_and_the_indices_say_the_same():
    games = VectorShogi(5, seed=1)
    played(games, 50)
    mask = games.legal_mask()
    assert mask.shape == (5, NUM_ACTIONS)
    legal, offsets = games.legal_actions()
    for g in range(5):
        assert np.flatnonzero(mask[g]).tolist() == sorted(legal[offsets[g] : offsets[g + 1]])
    again = np.ones_like(mask)
    assert games.legal_mask(again) is again
    assert np.array_equal(again, mask)


def test_planes_go_into_the_callers_buffer_and_equal_a_single_games():
    games = VectorShogi(6, seed=2)
    played(games, 120)
    buffer = np.full((6, 46, 9, 9), np.nan, dtype=np.float32)
    channels_last = np.full((6, 9, 9, 46), np.nan, dtype=np.float32).transpose(0, 3, 1, 2)
    for out in (buffer, channels_last):
        assert games.planes(out) is out
        for g in range(6):
            assert np.array_equal(out[g], games.game(g).planes())
        assert np.array_equal(planes(games.observations), out)


def test_planes_and_actions_of_the_turned_board_are_the_same_but_for_the_side():
    games = VectorShogi(20, seed=4)
    played(games, 101)
    for g in range(20):
        game = games.game(g)
        flipped = ShogiGame(game._board.to_sfen_flipped())
        assert flipped.turn != game.turn
        assert sorted(flipped.legal_actions()) == sorted(game.legal_actions())
        mine, other = game.observation(), flipped.observation()
        assert np.array_equal(mine[:SIDE], other[:SIDE])
        assert mine[SIDE] != other[SIDE]


def test_a_wrong_action_names_the_game_and_the_action_and_changes_nothing():
    games = VectorShogi(4, seed=1)
    played(games, 30)
    before = games.observations.copy(), games.legal_actions()[0].copy(), games.move_counts.copy()
    actions = games.random_actions()
    actions[2] = 13_000 if 13_000 not in games.game(2).legal_actions() else 12_999
    with pytest.raises(IllegalActionError, match=f"action {actions[2]} is not legal in game 2"):
        games.step(actions)
    with pytest.raises(IllegalActionError, match="one per game"):
        games.step(actions[:3])
    with pytest.raises(IllegalActionError, match="float64"):
        games.step(actions.astype(float))
    after = games.observations, games.legal_actions()[0], games.move_counts
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert [len(games.game(g).moves) for g in range(4)] == games.move_counts.tolist()


@pytest.mark.parametrize("actions", [np.array([-1]), np.array([NUM_ACTIONS]), np.array([2**40])])
def test_numbers_outside_the_range_are_refused(actions):
    with pytest.raises(IllegalActionError, match="game 0"):
        VectorShogi(1).step(actions)


def test_games_start_from_the_given_positions_and_end_by_mate_for_the_mover():
    games = VectorShogi(2, start_sfens=[MATE_IN_ONE])
    mate = games.game(0)
    action = next(a for a in mate.legal_actions() if _mates(mate, a))
    result = games.step(np.array([action, action]))
    assert result.rewards.tolist() == [1, 1]
    assert str(result.finished[0].outcome) == "black wins by checkmate"
    assert games.game(0).moves == []


def _mates(game: ShogiGame, action: int) -> bool:
    twin = game.copy()
    twin.step(action)
    return twin.outcome is not None


def test_a_declaration_of_the_other_side_costs_the_mover_the_game():
    entered = "+R+R2K4/+B+B7/PPPPPP3/9/9/9/9/9/4k4 w 2P 1"
    games = VectorShogi(1, start_sfens=[entered])
    result = games.step(games.random_actions())
    assert result.rewards.tolist() == [-1]
    assert str(result.finished[0].outcome) == "black wins by declaration"


def test_play_goes_on_exactly_from_a_saved_state():
    starts = [ShogiGame().sfen(), MATE_IN_ONE]
    games = VectorShogi(8, seed=9, start_sfens=starts, move_limit=60)
    played(games, 75)
    state = games.state_dict()
    rest = played(games, 90)
    again = VectorShogi(8, seed=1, start_sfens=starts, move_limit=60)
    again.load_state_dict(state)
    assert played(again, 90) == rest
    assert np.array_equal(again.observations, games.observations)
    with pytest.raises(ValueError, match="8 games, not 3"):
        VectorShogi(3).load_state_dict(state)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"num_games": 0}, "num_games"),
        ({"num_games": 1, "move_limit": 0}, "move_limit"),
        ({"num_games": 1, "start_sfens": []}, "start"),
        ({"num_games": 1, "start_sfens": ["4k4/4G4/4P4/9/9/9/9/9/4K4 w - 1"]}, "checkmate"),
        ({"num_games": 1, "start_sfens": ["rubbish"]}, "rubbish"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        VectorShogi(**settings)


def test_the_state_of_an_old_checkpoint_which_has_moves_as_bits_goes_on_exactly():
    old = {
        "starts": np.array([1, 0]),
        "move_counts": np.array([6, 6], np.int32),
        "history": np.array(
            [[8265, 2100, 2332, 6699, 4645, 5417], [2055, 6064, 948, 5815, 10319, 3475]], np.uint16
        ),
        "streams": np.array([9469514859118785287, 5717551849591673366], np.uint64),
    }
    games = VectorShogi(2, seed=5, start_sfens=[START_SFEN, HANDICAPS["lance"]])
    first = moves_in_state(old, games.start_sfens)
    assert first == (HANDICAPS["lance"], ["8b9b", "2h6h", "3a4b", "6h5h", "5a5b", "5g5f"])
    games.load_state_dict(old)
    assert games.moves_of(0) == first
    assert "history" not in games.state_dict()
    played(games, 3)
    assert games.moves_of(0)[1][-3:] == ["4a3a", "2g2f", "2c2d"]
    assert games.moves_of(1)[1][-3:] == ["6h5h", "4c4d", "3i4h"]


def test_games_start_drawn_by_their_own_streams():
    starts = [START_SFEN, HANDICAPS["rook"], HANDICAPS["lance"]]
    few = VectorShogi(2, seed=3, move_limit=2, start_sfens=starts)
    many = VectorShogi(9, seed=3, move_limit=2, start_sfens=starts)
    for _ in range(12):  # each game ends after two moves, and the next one is drawn
        for games in (few, many):
            games.step(games.random_actions())
        np.testing.assert_array_equal(few.observations, many.observations[:2])
