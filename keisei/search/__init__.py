"""Tree search over a network, for play."""

from keisei.search.search import Report, Search, SearchSettings
from keisei.search.tree import Tree

__all__ = ["Report", "Search", "SearchSettings", "Tree"]
