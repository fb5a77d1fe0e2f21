"""What a position of the tree makes of what is known of its moves."""

import numpy as np
import pytest

from keisei.search.node import Node
from keisei.search.tree import cancel


def node(*priors):
    one = Node()
    own = np.array(priors, np.float32)
    one.expand(0.0, own, np.zeros_like(own), own.copy())
    return one


@pytest.mark.parametrize(
    ("mates", "best"),
    [
        ((-2, 0, None), 1),  # the opponent is mated at once, or after two more moves
        ((1, 5, 3), 1),  # all lose: as late as can be
        ((5, None, 3), 1),  # only one is not lost
    ],
)
def test_it_wins_as_fast_as_can_be_and_loses_as_slowly(mates, best):
    one = node(0.2, 0.2, 0.6)
    for index, mate in enumerate(mates):
        one.start_visit(index).mate = mate
    assert one.best() == best


def test_of_equal_moves_the_likelier_is_tried_first_and_then_the_other():
    one = node(0.4, 0.6)
    for tried in (1, 0):
        one.visits += 1
        assert one.choose(exploration=1.0) == tried
        one.start_visit(tried)
        one.end_visit(tried, 0.0)


def test_visits_under_way_make_a_move_less_urgent_but_not_worse():
    root = node(0.6, 0.4)
    root.visits = 1
    root.start_visit(0)
    root.end_visit(0, 0.5)
    urgency = root.u[0]
    for _ in range(2):
        child = root.start_visit(0)
    assert root.q[0] == 0.5
    assert root.u[0] < urgency
    root.end_visit(0, -0.1)
    assert root.q[0] == pytest.approx(0.2)  # the mean of the two that are known
    assert (child.visits, child.pending) == (3, 1)


def test_a_visit_that_is_cancelled_leaves_no_trace():
    root = node(0.5, 0.5)
    root.visits = 3
    before = root.u.copy()
    root.visits += 1
    child = root.start_visit(0)
    cancel([(root, 0)])
    assert (root.visits, child.visits, child.pending, child.total) == (3, 0, 0, 0.0)
    assert (root.u == before).all()
