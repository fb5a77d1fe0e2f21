"""What is new in the runs: numbers, workers and games in progress."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from keisei.errors import KeiseiError
from keisei.shogi import ShogiGame
from keisei.web.events import Messages
from keisei.web.networks import Network, Networks, Opinion, observe
from keisei.web.positions import blacks_value, position_of, top_moves
from keisei.web.runs import RunsFolder, Signature
from keisei.web.schema import LiveGame, LiveUpdate, RunList
from keisei.web.threads import Threads

NEW_NETWORK_EVERY = 20.0  # seconds; fast training saves more often than anyone can follow


class RunsWatch:
    """The list of runs, when one of them has changed."""

    def __init__(self, runs: RunsFolder, threads: Threads) -> None:
        self._runs, self._threads = runs, threads

    async def look(self) -> Messages | None:
        return await self._threads.run(self._look)

    def _look(self) -> Messages:
        return {"runs": RunList(runs=self._runs.rows())}


class RunWatch:
    """One run, when it has changed."""

    def __init__(self, runs: RunsFolder, networks: Networks, threads: Threads, name: str) -> None:
        self._runs, self._networks, self._threads = runs, networks, threads
        self._name = name
        self._seen: Signature | None = None
        self._network: Network | None = None
        self._network_path: Path | None = None
        self._network_since = -NEW_NETWORK_EVERY

    async def look(self) -> Messages | None:
        return await self._threads.run(self._look)

    def _look(self) -> Messages | None:
        signature = self._runs.signature(self._name)
        if signature == self._seen:
            return None
        update = self._runs.update(self._name)
        messages: Messages = {"update": update}
        if self._seen is None:  # send the numbers at once: a network may take seconds to load
            self._seen = ()
            return messages
        if update.row.kind == "shogi" and update.row.state != "broken":
            playing = self._games() if update.row.state == "training" else []
            messages["live"] = LiveUpdate(games=playing)
        self._seen = signature
        return messages

    def _games(self) -> list[LiveGame]:
        with self._runs.reading(self._name) as reader:
            games = (reader.now("live games") if reader else None) or []
            boards = [ShogiGame.from_moves(game["start"], game["moves"]) for game in games]
            opinions = self._opinions(boards)
            return [_live_game(*one) for one in zip(games, boards, opinions, strict=True)]

    def _opinions(self, boards: list[ShogiGame]) -> list[Opinion | None]:
        """What the newest network thinks of the games; None for all if it cannot be loaded."""
        self._renew_network()
        if self._network is None:
            return [None] * len(boards)
        return [*self._network.look_at([observe(board) for board in boards])]

    def _renew_network(self) -> None:
        if time.monotonic() - self._network_since < NEW_NETWORK_EVERY:
            return
        # A broken file, or one that was just removed: the next look will find another.
        with suppress(KeiseiError, OSError):
            path = self._runs.newest_checkpoint(self._name)
            if path is not None and path != self._network_path:
                self._network = self._networks.load(path)
                self._network_path, self._network_since = path, time.monotonic()


def _live_game(game: dict[str, Any], board: ShogiGame, seen: Opinion | None) -> LiveGame:
    values = [(int(ply), float(value)) for ply, value in game["values"]]
    if seen:
        values.append((len(board.moves), blacks_value(seen.score)))
    return LiveGame(
        game=game["game"],
        position=position_of(board),
        move_number=len(board.moves),
        top=top_moves(board, seen.top if seen else []),
        values=values,
    )
