"""Tree search over a network, for play."""

from keisei.search.limit import Clock, Limit
from keisei.search.score import Score
from keisei.search.search import Report, Search, SearchSettings
from keisei.search.thinker import Candidate, Thinker
from keisei.search.tree import Tree

__all__ = [
    "Candidate",
    "Clock",
    "Limit",
    "Report",
    "Score",
    "Search",
    "SearchSettings",
    "Thinker",
    "Tree",
]
