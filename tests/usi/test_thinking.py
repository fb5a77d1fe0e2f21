"""What a thinker says and answers, with a policy that knows material alone."""

import math

import pytest

from keisei.search import Thinker
from keisei.shogi import ShogiGame
from keisei.shogi.rules import START_SFEN
from keisei.usi.options import engine_options
from keisei.usi.protocol import Go
from keisei.usi.thinking import think
from tests.search.test_search import by_material

BLACK_AHEAD = START_SFEN.replace("1r5b1", "9")
WHITE_AHEAD = START_SFEN.replace("1B5R1", "9")


def last_info(thinker, sfen, go):
    """The words of what was last said before the answer, from the score on."""
    said = []
    think(thinker, ShogiGame(sfen), go, engine_options("", 0), lambda wait: None, said.append)
    words = said[-1].split()
    return words[words.index("score") :]


@pytest.mark.parametrize(
    ("sfen", "mover", "sign"),
    [
        (BLACK_AHEAD, "b", 1),
        (BLACK_AHEAD, "w", -1),
        (WHITE_AHEAD, "w", 1),
        (WHITE_AHEAD, "b", -1),
    ],
)
def test_the_score_is_seen_by_the_player_to_move(sfen, mover, sign):
    words = last_info(Thinker(by_material), sfen.replace(" b ", f" {mover} "), Go(nodes=60))
    assert words[:2] == ["score", "cp"]
    assert sign * int(words[2]) > 500


def test_nodes_alone_find_the_same_however_long_a_batch_takes():
    quick, slow = (Thinker(by_material, longest_batch=limit) for limit in (math.inf, 0))
    for sfen in (START_SFEN, BLACK_AHEAD):
        for go in (Go(nodes=200), Go()):
            assert last_info(quick, sfen, go) == last_info(slow, sfen, go)
