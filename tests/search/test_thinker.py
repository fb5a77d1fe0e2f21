"""The thinker under engine, page, terminal and matches, with a policy that knows material alone."""

import subprocess
import sys
import threading

import pytest

from keisei.search import Limit, Score, SearchSettings, Thinker
from keisei.shogi import ShogiGame
from tests.search.test_search import by_material

MATE_IN_ONE = "4k4/9/4G4/9/9/9/9/9/4K4 b G 1"


def play_on(game, report):
    """The game after the move that was found and the answer that it expects."""
    for usi in report.line[:2]:
        game.push_usi(usi)


def test_what_was_found_below_the_moves_played_is_kept():
    thinker, game = Thinker(by_material), ShogiGame()
    play_on(game, thinker.think(game, Limit(600)))
    report = thinker.think(game, Limit(100))
    assert report.nodes == 100
    assert report.visits > 100
    thinker.forget()
    assert thinker.think(game, Limit(100)).visits == 100


def test_a_kept_tree_goes_on_in_another_thread():
    thinker, game = Thinker(by_material), ShogiGame()
    play_on(game, thinker.think(game, Limit(600)))
    reports = []

    def think(moves):
        board = ShogiGame.from_moves(game.start_sfen, moves)  # a board belongs to its thread
        reports.append(thinker.think(board, Limit(50)))

    for _ in range(3):
        thread = threading.Thread(target=think, args=(game.moves,))
        thread.start()
        thread.join(60)
    assert [report.nodes for report in reports] == [50, 50, 50]
    assert [report.visits - reports[0].visits for report in reports] == [0, 50, 100]


def test_thinking_leaves_the_game_as_it_is():
    thinker, game = Thinker(by_material), ShogiGame()
    before = game.sfen(), game.moves, game.legal_usi()
    thinker.think(game, Limit(50))
    assert (game.sfen(), game.moves, game.legal_usi()) == before


def test_games_that_are_thought_about_together_each_keep_their_tree():
    lines = ([], ["7g7f"], ["2g2f", "8c8d"])
    games = {
        number: ShogiGame.from_moves(ShogiGame().sfen(), moves)
        for number, moves in enumerate(lines)
    }
    together = Thinker(by_material)
    first = together.think_together(games, Limit(300))
    for report, game in zip(first, games.values(), strict=True):
        assert Thinker(by_material).think(game, Limit(300)) == report
        play_on(game, report)
    for report in together.think_together(games, Limit(10)):
        assert report.nodes == 10
        assert report.visits > 10


def test_a_tree_does_not_outgrow_its_memory():
    thinker = Thinker(by_material, most_nodes=100)
    visits = [thinker.think(ShogiGame(), Limit(60)).visits for _ in range(4)]
    assert visits == [60, 100, 101, 102]  # each answer has looked at something
    assert thinker.nodes == 102


def test_an_error_while_thinking_drops_a_tree_that_may_be_half_changed():
    def fails(*_):
        raise RuntimeError("no network")

    thinker = Thinker(fails)
    with pytest.raises(RuntimeError, match="no network"):
        thinker.think(ShogiGame(), Limit(5))
    assert thinker.nodes == 0


def test_moves_are_ordered_by_visits_and_the_move_to_play_comes_first():
    thinker = Thinker(by_material)
    report = thinker.think(ShogiGame("4k4/9/9/9/4r4/4S4/9/9/4K4 w - 1"), Limit(200))
    first, *others = thinker.ranked_moves(5)
    assert len(others) == 4
    assert first.move == report.move
    assert first.score == report.score
    assert report.score.side == "white"
    assert len({one.move for one in (first, *others)}) == 5


def test_without_nodes_the_score_is_the_networks():
    ahead = ShogiGame("4k4/9/9/9/9/9/9/9/4K4 w r 1")
    report = Thinker(by_material).think(ahead, Limit(0))
    assert report.visits == 0
    assert report.score.side == "white"
    assert report.score.value > 0.5


def test_a_mate_that_was_seen_at_once_comes_first_with_its_score_and_probability():
    thinker, game = Thinker(by_material), ShogiGame(MATE_IN_ONE)
    thinker.think(game, Limit(20))
    best, *others = thinker.ranked_moves(200)
    assert (best.move, best.score) == ("G*5b", Score("black", 1.0, mate=1))
    assert best.probability == pytest.approx(1 / len(game.legal_usi()))
    assert len(others) == len(game.legal_usi()) - 1
    assert all(one.score is None for one in others)


def test_a_score_turns_with_the_side_that_sees_it():
    lost = Score("black", -1.0, mate=-4)
    assert lost.seen_by("white") == Score("white", 1.0, mate=4)
    assert lost.seen_by("white").seen_by("black") == lost.seen_by("black") == lost
    assert (lost.win_chance, lost.seen_by("white").win_chance) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("limit", "timed"),
    [
        (Limit(5), False),
        (Limit(5, stop=lambda: False), False),
        (Limit(5, seconds=1), True),
        (Limit(stop=lambda: False), True),
    ],
)
def test_a_limit_of_nodes_alone_does_not_depend_on_time(limit, timed):
    assert limit.timed == timed


def test_a_search_by_time_ends_and_has_a_move():
    thinker = Thinker(by_material, SearchSettings(leaves=4), longest_batch=0)
    for limit in (Limit(seconds=0.001), Limit(10**9, seconds=0.01)):
        assert thinker.think(ShogiGame(), limit).move in ShogiGame().legal_usi()


def test_the_search_is_imported_without_pytorch():
    code = "import sys, keisei.search; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_each_of_the_best_moves_has_a_line_and_the_score_that_it_leads_to():
    thinker, game = Thinker(by_material), ShogiGame()
    best = thinker.think(game, Limit(600))
    first, *others = thinker.reports(5)
    assert first == best
    assert len({report.move for report in (first, *others)}) == 5
    for report in others:
        after = ShogiGame.from_moves(game.sfen(), report.line)
        assert after.moves == report.line
        assert report.score.side == "black"
        assert report.score.value <= first.score.value + 0.1  # the most visited, not the luckiest


def test_a_move_into_mate_says_so_in_its_line():
    thinker, game = Thinker(by_material), ShogiGame("4k4/9/9/9/9/9/4g4/9/3K5 b 2g 1")
    thinker.think(game, Limit(200))
    *_, worst = thinker.reports(20)
    assert (worst.line[0], worst.score) == ("6i5i", Score("black", -1.0, mate=-2))
    assert str(ShogiGame.from_moves(game.sfen(), worst.line).outcome) == "white wins by checkmate"
