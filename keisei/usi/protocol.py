"""Reading USI's commands. Nothing here needs a network: an engine must answer before it has one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from keisei.errors import KeiseiError
from keisei.search import Limit
from keisei.shogi.actions import Side
from keisei.shogi.rules import START_SFEN

UNLIMITED_NODES = 800  # for a `go` without any limit


class UsiError(KeiseiError, ValueError):
    """A line that is not USI, or that asks for something impossible; the message names it."""


@dataclass(frozen=True)
class Position:
    """A game so far: its start position and moves."""

    start_sfen: str = START_SFEN
    moves: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As a USI command.

        >>> str(Position(moves=("7g7f",)))
        'position startpos moves 7g7f'
        """
        start = "startpos" if self.start_sfen == START_SFEN else f"sfen {self.start_sfen}"
        return f"position {start}" + (f" moves {' '.join(self.moves)}" if self.moves else "")


def read_position(words: Sequence[str]) -> Position:
    """The position of a `position` command's words; whether its moves are legal is not checked.

    >>> read_position("startpos moves 7g7f 3c3d".split()).moves
    ('7g7f', '3c3d')
    """
    words = list(words)
    split = words.index("moves") if "moves" in words else len(words)
    start, moves = words[:split], words[split + 1 :]
    if start == ["startpos"]:
        return Position(moves=tuple(moves))
    if start[:1] == ["sfen"] and len(start) in (4, 5):
        return Position(" ".join(start[1:]), tuple(moves))
    raise UsiError(f"position {' '.join(words)[:80]!r}: it must begin with startpos or sfen")


@dataclass(frozen=True)
class Go:
    """What a `go` command asks for; times are in milliseconds."""

    btime: int | None = None
    wtime: int | None = None
    binc: int = 0
    winc: int = 0
    byoyomi: int = 0
    movetime: int | None = None
    nodes: int | None = None
    infinite: bool = False
    ponder: bool = False
    mate: float | None = None  # milliseconds to find one; infinity when there is no limit

    @property
    def has_clock(self) -> bool:
        """Does it mention time?"""
        clocks = (self.btime, self.wtime, self.movetime)
        return bool(self.byoyomi or self.binc or self.winc) or any(t is not None for t in clocks)

    @property
    def by_nodes_alone(self) -> bool:
        """Is the search limited by nodes alone? Then it finds the same every time."""
        return not (self.has_clock or self.infinite or self.ponder or self.mate is not None)

    def limit(self, side: Side, nodes: int = 0, overhead: int = 0) -> Limit:
        """When to stop thinking for a side.

        `nodes` is what a GUI has set for every `go` that names none, `overhead` what is lost
        between GUI and engine.

        >>> Go(byoyomi=1000).limit("black", overhead=200).seconds
        0.8
        """
        wanted = self.nodes or nodes or (UNLIMITED_NODES if self.by_nodes_alone else None)
        if self.mate is not None:
            return Limit(wanted, seconds=self.mate / 1000)
        if self.infinite or not self.has_clock:
            return Limit(wanted)
        left, gain = (self.btime, self.binc) if side == "black" else (self.wtime, self.winc)
        clock = (left or 0, gain, self.byoyomi) if self.movetime is None else (0, 0, self.movetime)
        main, increment, byoyomi = (time / 1000 for time in clock)
        return Limit.by_clock(main, increment, byoyomi, overhead / 1000, wanted)


_NUMBERS = ("btime", "wtime", "binc", "winc", "byoyomi", "movetime", "nodes")


def read_go(words: Sequence[str]) -> Go:
    """What the words after `go` ask for; unknown words are skipped: a GUI must get a move.

    >>> read_go("ponder btime 60000 wtime 50000 byoyomi 1000".split()).byoyomi
    1000
    """
    found: dict[str, int | float | bool] = {}
    for word, after in zip(words, [*words[1:], ""], strict=False):
        if word in ("infinite", "ponder"):
            found[word] = True
        elif word == "mate" and not after.isdecimal():
            found[word] = math.inf
        elif (word == "mate" or word in _NUMBERS) and after.removeprefix("-").isdecimal():
            # No clock shows more than this, and Python's would overflow.
            found[word] = min(max(int(after[:20]), 0), 10**12)
    if "mate" in found:
        found.pop("infinite", None)  # `go mate infinite` is a search for mate
    return Go(**found)  # type: ignore[arg-type]


def read_setoption(words: Sequence[str]) -> tuple[str, str]:
    """Name and value of `setoption name N value V`; a button has no value.

    >>> read_setoption("name USI_Hash value 256".split())
    ('USI_Hash', '256')
    """
    if words[:1] != ["name"] or len(words) < 2:
        raise UsiError("setoption needs: setoption name NAME value VALUE")
    split = words.index("value") if "value" in words else len(words)
    return " ".join(words[1:split]), " ".join(words[split + 1 :])


def centipawns(value: float) -> int:
    """A value from -1 to 1 as GUIs show it: 600 is a 73 % chance to win, by the usual logistic.

    >>> centipawns(0.0), centipawns(0.46)
    (0, 597)
    """
    chance = min(max((1 + value) / 2, 0.0005), 0.9995)
    return round(600 * math.log(chance / (1 - chance)))
