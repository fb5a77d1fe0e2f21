"""Any USI engine as a player."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from keisei.evaluation.players import FAILS, RESIGNS, Turns
from keisei.usi.client import EngineError, UsiClient
from keisei.usi.protocol import Position

log = logging.getLogger(__name__)


class UsiPlayer:
    """Plays an engine's moves; `processes` of them think side by side, one per core.

    If an engine dies, stops answering or plays an illegal move, its game is aborted and counted
    separately, and the engine is restarted for the other games. If that fails, the other processes
    play on; without any left, all games are aborted.
    """

    def __init__(
        self,
        command: Sequence[str],
        go: str,
        name: str,
        options: Mapping[str, str] | None = None,
        processes: int = 1,
        move_timeout: float = 60.0,
    ) -> None:
        self.name = name
        self._go = go
        self._engines = [
            UsiClient(command, options, move_timeout=move_timeout) for _ in range(processes)
        ]
        try:
            for engine in self._engines:
                engine.start()
        except EngineError:
            self.close()
            raise

    def close(self) -> None:
        """End the processes."""
        for engine in self._engines:
            engine.close()

    def choose(self, turns: Turns) -> npt.NDArray[np.int64]:
        chosen = np.full(len(turns), FAILS, dtype=np.int64)
        rows = iter(range(len(turns)))
        while batch := list(zip(tuple(self._engines), rows, strict=False)):
            asked = [self._ask(engine, turns, row) for engine, row in batch]
            for (engine, row), fine in zip(batch, asked, strict=True):
                if fine:
                    chosen[row] = self._answer(engine, turns, row)
        return chosen

    def _ask(self, engine: UsiClient, turns: Turns, row: int) -> bool:
        start, moves = turns.history_of(turns.games[row])
        try:
            engine.start_thinking(Position(start, tuple(moves)), self._go)
        except EngineError as error:
            self._restart(engine, error)
            return False
        return True

    def _answer(self, engine: UsiClient, turns: Turns, row: int) -> int:
        try:
            move = engine.answer()
        except EngineError as error:
            self._restart(engine, error)
            return FAILS
        if move == "resign":
            return RESIGNS
        # By our rules a win is declared as soon as it can be: here the game would be over.
        place = turns.place(row, move)
        if place == FAILS:
            start, moves = turns.history_of(turns.games[row])
            log.warning(
                "%s played the illegal move %r: %s",
                self.name,
                move,
                Position(start, tuple(moves)),
            )
        return place

    def _restart(self, engine: UsiClient, error: EngineError) -> None:
        log.warning("%s; the game is aborted and the engine restarted", error)
        try:
            engine.restart()
        except EngineError as again:
            log.warning("%s cannot be restarted: %s", self.name, again)
            engine.close()
            self._engines.remove(engine)
