"""Trees of variations, and KIF with branches that other programs read."""

import pytest
from rsshogi.record import Record

from keisei.shogi import Outcome
from keisei.shogi.records import GameRecord, RecordError, parse_record
from keisei.shogi.variations import FIRST_NODE, GameTree, Variation, read_tree, tree_bytes
from tests.shogi.tsshogi import read_by_tsshogi

RECORD = GameRecord(
    moves=("7g7f", "3c3d", "2g2f", "8c8d"),
    black="A",
    white="B",
    outcome=Outcome("white", "resignation"),
    comments={0: "before", 2: "two"},
)


@pytest.fixture
def tree():
    """Branches at the start, in the middle, within a branch, twice in one place, and at the end."""
    tree = GameTree(RECORD)
    tree, first = tree.play(2, "6g6f")
    tree, second = tree.play(first, "8c8d")
    tree, _ = tree.play(first, "4c4d")
    tree, third = tree.play(second, "1g1f")
    for parent, move in ((0, "2g2f"), (4, "1g1f"), (2, "1g1f")):
        tree, _ = tree.play(parent, move)
    return tree.comment(first, "why\nnot").comment(third, "deep").comment(4, "last")


def lines(tree):
    return sorted(
        (tree.moves_to(one.node), one.comment) for one in (*tree.variations, Variation(4, 3, ""))
    )


def test_a_move_that_is_there_is_not_added_again(tree):
    assert tree.play(0, "7g7f") == (tree, 1)
    assert tree.play(2, "6g6f") == (tree, FIRST_NODE + 1)
    with pytest.raises(RecordError, match="illegal move"):
        tree.play(2, "6g6e")
    for node in (-1, 5, FIRST_NODE + 99):
        with pytest.raises(RecordError, match="no node"):
            tree.play(node, "7g7f")


def test_a_pruned_branch_is_gone_with_all_that_follows_and_the_others_stay(tree):
    pruned = tree.prune(FIRST_NODE + 1)
    assert [one.move for one in pruned.variations] == ["2g2f", "1g1f", "1g1f"]
    assert tree.prune(2) == tree  # the game itself is never pruned


def test_variations_that_are_no_tree_are_refused():
    looped = GameTree(RECORD, (Variation(FIRST_NODE + 1, FIRST_NODE + 1, "7g7f"),))
    with pytest.raises(RecordError, match="broken"):
        looped.moves_to(FIRST_NODE + 1)


@pytest.mark.parametrize("name", ["game.kif", "game.kifu"])
def test_what_is_written_is_read_again(tree, name):
    data = tree_bytes(tree, name)
    record = parse_record(data, name)
    assert record == tree.record
    assert record.comments == tree.record.comments
    text = data.decode("cp932" if name == "game.kif" else "utf-8")
    assert lines(read_tree(text, record)) == lines(tree)


def test_rsshogi_reads_the_game_and_its_end(tree):
    read = Record.from_kif_str(tree_bytes(tree, "game.kifu").decode())
    assert tuple(entry.move.to_usi() for entry in read.moves) == RECORD.moves
    assert read.main_terminal.kind == "RESIGN"


def test_rsshogi_reads_the_branches_of_a_game_that_is_not_over(tree):
    open_game = GameTree(GameRecord(moves=RECORD.moves), tree.variations)
    read = Record.from_kif_str(tree_bytes(open_game, "game.kifu").decode())
    nodes = [read.root_node_id()]
    for node in nodes:
        nodes += read.children(node)
    assert len(nodes) == 1 + len(RECORD.moves) + len(tree.variations)


def test_tsshogi_reads_the_game_its_branches_and_comments(tree, tmp_path):
    assert read_by_tsshogi(tree_bytes(tree, "game.kifu").decode(), tmp_path) == [
        [0, "start", "before"],
        [1, "7g7f", ""],
        [2, "3c3d", "two"],
        [3, "2g2f", ""],
        [4, "8c8d", "last"],
        [5, "resign", ""],
        [5, "1g1f", ""],
        [3, "6g6f", "why\nnot"],
        [4, "8c8d", ""],
        [5, "1g1f", "deep"],
        [4, "4c4d", ""],
        [3, "1g1f", ""],
        [1, "2g2f", ""],
    ]


def test_branches_that_cannot_be_read_do_not_hinder_the_game():
    text = tree_bytes(GameTree(RECORD), "game.kifu").decode() + "\n変化：9手\n   9 nonsense\n"
    assert read_tree(text, RECORD).variations == ()
