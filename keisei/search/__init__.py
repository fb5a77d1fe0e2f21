"""Tree search over a network, for play."""

from keisei.search.limit import Limit
from keisei.search.search import Report, Score, Search, SearchSettings
from keisei.search.thinker import RankedMove, Thinker
from keisei.search.tree import Tree

__all__ = [
    "Limit",
    "RankedMove",
    "Report",
    "Score",
    "Search",
    "SearchSettings",
    "Thinker",
    "Tree",
]
