"""The levels of the page are as far apart as their ratings in levels.json say.

When a test fails because a level or a network changed: scripts/rate_levels.py rates them again.
"""

import json
from itertools import pairwise
from math import hypot

import pytest

from keisei.evaluation.contestants import open_player
from keisei.evaluation.yardstick import load_yardstick
from keisei.models.levels import FILE, LEVELS, fingerprint, ratings
from tests.docs.pages import ROOT

DATA = json.loads(FILE.read_text(encoding="utf-8"))
REFERENCES = {reference.player for reference in load_yardstick().references}
RATED = [ratings()[level.player] for level in LEVELS]


def test_there_are_eleven_levels_with_names_of_their_own():
    assert len(LEVELS) == len({level.name for level in LEVELS}) == 11
    assert {level.name: level.player for level in LEVELS} == {
        row["level"]: row["player"] for row in DATA["ratings"]
    }


def test_what_was_rated_is_what_plays():
    for level, row in zip(LEVELS, DATA["ratings"], strict=True):
        assert row["network"] == fingerprint(level.network), f"{level.name}: rate it again"
        if row["player"] not in REFERENCES:
            assert row["games"] == sum(2 * sum(pairs) for pairs in row["results"].values())
    assert DATA["yardstick"] == load_yardstick().made
    assert DATA["made"] >= DATA["yardstick"]


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_a_level_is_a_player_of_matches(level):
    with open_player(level.player, seed=1) as player:
        assert player.name.startswith(level.network)


def test_the_documentation_has_the_ratings():
    text = (ROOT / "docs" / "web.md").read_text(encoding="utf-8")
    for level, one in zip(LEVELS, RATED, strict=True):
        line = next(line for line in text.splitlines() if line.startswith(f"| {level.name} |"))
        assert f"| {one.elo:,} ({one.low:,} to {one.high:,}) | {one.games} |" in line


def test_each_level_is_at_least_100_elo_above_the_one_before():
    assert [two.elo - one.elo for one, two in pairwise(RATED) if two.elo - one.elo < 100] == []


def test_second_neighbours_are_apart_with_95_percent_confidence():
    for one, two in zip(RATED, RATED[2:], strict=False):
        spread = hypot((one.high - one.low) / 2, (two.high - two.low) / 2)
        assert two.elo - one.elo > spread
