import numpy as np
import pytest
from rsshogi.core import Board

from keisei.config_schema import AppConfig
from keisei.core.policy import uniform
from keisei.core.ppo_agent import PPOAgent
from keisei.search import Limit, Score, Search, SearchSettings, Tree
from keisei.shogi import PolicyOutputMapper, ShogiGame, VectorShogi
from keisei.shogi.material import material
from keisei.shogi.rules import START_SFEN

MATE_IN_THREE = (  # 8h7h 6i5i G*5h
    "1ng4n1/2kr+P1s2/+P1ps1+P1p1/1P1pg3l/p7p/6pP1/P1PgBp1R+b/L+pGS4L/1N1K1LSN1 w 3p 1"
)
ENTERED = "+R+R+B+BGGGGK/PPPPPPP2/9/9/9/9/9/9/k8 w 2S10P2s2n2l 1"  # Black declares next


def by_material(positions):
    """All moves alike, and who has more stands better: a policy without a network."""
    values = np.tanh(material(positions.observations) / 10).astype(np.float32)
    return uniform(positions)._replace(values=values)


@pytest.fixture(scope="module")
def network():
    return PPOAgent(AppConfig(), "cpu").evaluate


def tree_of(sfen=START_SFEN, moves=()):
    return Tree(ShogiGame.from_moves(sfen, moves, move_limit=None))


def searched(policy, sfen=START_SFEN, moves=(), nodes=400, **settings):
    search, tree = Search(policy, SearchSettings(**settings)), tree_of(sfen, moves)
    search.run([tree], Limit(nodes))
    return search.report(tree), tree


def nodes_below(node, moves=()):
    yield node, moves
    for index, child in node.children.items():
        yield from nodes_below(child, (*moves, index))


def usi_line(tree, indices):
    node, line = tree.root, []
    for index in indices:
        line.append(tree.usi(node, index))
        node = node.children[index]
    return line


def test_what_the_network_sees_at_a_leaf_is_the_position_after_the_moves(network):
    start, opening = VectorShogi(1, seed=4).moves_of(0)[0], ["7g7f", "3c3d", "8h2b+", "3a2b"]
    report, tree = searched(network, start, opening, nodes=300)
    seen = 0
    for node, indices in nodes_below(tree.root):
        if node.expanded:
            game = ShogiGame.from_moves(start, opening + usi_line(tree, indices))
            assert (node.observation == game.observation()).all()
            assert sorted(node.actions.tolist()) == sorted(game.legal_actions().tolist())
            seen += 1
    assert seen > 200
    assert report.visits == 300


def test_every_visit_is_counted_once_on_its_way_up():
    _, tree = searched(by_material, nodes=500)
    for node, _ in nodes_below(tree.root):
        children = sum(child.visits for child in node.children.values())
        if node is tree.root:
            assert children == node.visits == 500
        elif node.expanded and node.mate is None:
            assert children == node.visits - 1
        assert abs(node.total) <= node.visits


def test_the_search_takes_a_rook_that_is_given_away():
    report, _ = searched(by_material, "4k4/9/9/9/4r4/4S4/9/9/4K4 b - 1", nodes=200)
    assert report.move == "5f5e"
    assert report.score.value > 0


def test_a_mate_in_one_is_found_without_a_visit():
    report, tree = searched(by_material, "4k4/9/4G4/9/9/9/9/9/4K4 b G 1", nodes=100)
    assert (report.move, report.score) == ("G*5b", Score("black", 1.0, mate=1))
    assert tree.root.visits == 0


def test_a_mate_in_three_is_proven_and_shown_to_its_end():
    report, _ = searched(by_material, MATE_IN_THREE, nodes=20_000)
    assert report.score == Score("white", 1.0, mate=3)
    game = ShogiGame(MATE_IN_THREE)
    for usi in report.line:
        game.push_usi(usi)
    assert str(game.outcome) == "white wins by checkmate"


def test_who_is_mated_whatever_it_plays_is_told_so():
    game = ShogiGame(MATE_IN_THREE)
    game.push_usi(searched(by_material, MATE_IN_THREE, nodes=20_000)[0].move)
    report, _ = searched(by_material, game.sfen(), nodes=20_000)
    assert report.score == Score("black", -1.0, mate=-2)


def test_the_mate_finder_names_legal_moves_that_mate():
    games, found = VectorShogi(64, seed=3), 0
    for _ in range(200):
        games.step(games.random_actions())
        for index in range(0, 64, 8):
            start, moves = games.moves_of(index)
            board = Board(start)
            for usi in moves:
                board.apply_usi(usi)
            mate = board.solve_mate_in_one()
            if mate is not None:
                game = ShogiGame.from_moves(start, moves, move_limit=None)
                if game.outcome is None:
                    game.push_usi(mate.to_usi())
                    assert game.outcome.reason == "checkmate"
                    found += 1
    assert found > 5


def child_of(tree, usi):
    names = [tree.usi(tree.root, index) for index in range(len(tree.root.moves))]
    return tree.root.children[names.index(usi)]


def test_the_fourth_occurrence_ends_the_game_in_the_tree_and_no_earlier_one():
    shuffle = ["5i5h", "5a5b", "5h5i", "5b5a"]
    start = "4k4/9/9/9/9/9/9/9/4K4 b R 1"
    for rounds, drawn in ((2, True), (1, False)):
        _, tree = searched(by_material, start, shuffle * rounds + shuffle[:3], nodes=50)
        assert child_of(tree, "5b5a").drawn == drawn


def test_the_fourth_occurrence_wins_for_who_was_in_check_all_the_time():
    start = "k8/9/9/9/9/9/9/9/K7R b - 1"
    around = ["9a9b", "1a1b", "9b9a", "1b1a"]  # Black checks with every move
    report, _ = searched(by_material, start, ["1i1a", *around * 3], nodes=300)
    assert (report.move, report.score.mate) == ("9a9b", 1)


def test_a_declaration_wins_in_the_tree():
    _, tree = searched(by_material, ENTERED, nodes=60)
    assert child_of(tree, "9i9h").mate == 1


def test_the_same_seed_gives_the_same_search_and_noise_is_there_only_when_asked_for(network):
    plain = [searched(network, nodes=200)[0] for _ in range(2)]
    assert plain[0] == plain[1]
    noisy = [searched(network, nodes=200, noise=0.5, seed=seed) for seed in (1, 1, 2)]
    assert noisy[0][0] == noisy[1][0]
    priors = [tree.root.priors for _, tree in noisy]
    assert (priors[0] == priors[1]).all()
    assert not np.allclose(priors[0], priors[2])
    assert priors[2].sum() == pytest.approx(1, abs=1e-5)


def sure_of_one(positions):
    """A policy that is sure of the first legal move of every position."""
    first = np.zeros(len(positions.legal), dtype=bool)
    first[positions.offsets[:-1]] = True
    log_probs = np.where(first, np.log(0.97), np.log(1e-3)).astype(np.float32)
    return uniform(positions)._replace(log_probs=log_probs)


def test_a_root_temperature_has_more_moves_looked_at_than_the_policy_is_sure_of():
    _, narrow = searched(sure_of_one, nodes=100, leaves=1, exploration=1.5)
    _, wide = searched(sure_of_one, nodes=100, leaves=1, exploration=1.5, root_temperature=2.5)
    assert len(narrow.root.children) < 3 < len(wide.root.children)
    assert wide.root.priors.sum() == pytest.approx(1, abs=1e-5)
    assert wide.root.priors.argmax() == narrow.root.priors.argmax()


def test_the_tree_below_the_moves_that_were_played_is_kept():
    search, tree = Search(by_material), tree_of()
    search.run([tree], Limit(600))
    line = search.report(tree).line[:2]
    expected = tree.root.children[tree.root.best()]
    expected = expected.children[expected.best()]
    game = ShogiGame.from_moves(START_SFEN, line, move_limit=None)
    tree.set_position(game)
    assert tree.root is expected
    before = tree.root.visits
    search.run([tree], Limit(100))
    report = search.report(tree)
    assert (report.visits, report.nodes) == (before + 100, 100)
    assert report.move in game.legal_usi()


def test_another_game_starts_a_new_tree():
    search, tree = Search(by_material), tree_of(moves=["7g7f"])
    for other in (["2g2f"], []):  # another line, and a move taken back
        search.run([tree], Limit(50))
        tree.set_position(ShogiGame.from_moves(START_SFEN, other, move_limit=None))
        assert tree.root.visits == 0


def test_trees_that_are_searched_together_find_what_each_finds_alone():
    games = VectorShogi(6, seed=2)
    for _ in range(30):
        games.step(games.random_actions())
    histories = [games.moves_of(index) for index in range(6)]
    search, trees = Search(by_material), [tree_of(*history) for history in histories]
    search.run(trees, Limit(150))
    for tree, history in zip(trees, histories, strict=True):
        alone = tree_of(*history)
        Search(by_material).run([alone], Limit(150))
        assert Search(by_material).report(alone) == search.report(tree)


def test_a_search_ends_when_it_is_told_to():
    search, tree = Search(by_material), tree_of()
    asked = []
    search.run([tree], Limit(stop=lambda: len(asked) == 3 or asked.append(1)))
    assert tree.root.visits <= 4 * search.settings.leaves
    with pytest.raises(ValueError, match="never end"):
        search.run([tree], Limit())


def test_moves_of_the_report_are_legal_for_both_colours(network):
    for moves in ([], ["7g7f"]):
        report, _ = searched(network, START_SFEN, moves, nodes=64)
        game = ShogiGame.from_moves(START_SFEN, moves)
        assert report.move in game.legal_usi()
        assert PolicyOutputMapper().usi_to_action(report.move, game.turn) in game.legal_actions()
