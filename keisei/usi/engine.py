"""Keisei as a USI engine.

The main thread thinks, because a board belongs to its thread. A second thread reads the input into
a queue, which the search checks after every batch, so `stop` takes effect within a batch.
PyTorch is imported at `isready`: a GUI waits only a few seconds for `usiok`.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import queue
import sys
import threading
from collections.abc import Callable

from keisei import __version__
from keisei.errors import KeiseiError
from keisei.search import Thinker
from keisei.shogi import ShogiGame
from keisei.shogi.rules import MissingKingError
from keisei.usi.options import engine_options
from keisei.usi.protocol import Go, Position, UsiError, read_go, read_position, read_setoption
from keisei.usi.thinking import Write, load_thinker, think

log = logging.getLogger(__name__)

Lines = queue.SimpleQueue[str | None]  # None: the input has ended


class Engine:
    """Answers USI commands until `quit` or the end of the input."""

    def __init__(self, lines: Lines, write: Write, model: str = "", nodes: int = 0) -> None:
        self._lines = lines
        self._write = write
        self._options = engine_options(model, nodes)
        self._thinker: Thinker | None = None
        self._loaded = ("", 0)  # the model and threads that the thinker was loaded for
        self._game: ShogiGame | None = ShogiGame(move_limit=None)
        self._one_king = False  # the last position was a mate problem with one king, and refused
        self._ahead: list[str | None] = []  # lines that arrived while thinking
        self._quit = False
        self._commands: dict[str, Callable[[list[str]], None]] = {
            "usi": self._usi,
            "isready": self._isready,
            "setoption": self._setoption,
            "usinewgame": self._usinewgame,
            "position": self._set_position,
            "go": self._go,
            "stop": self._nothing,  # no search is running
            "ponderhit": self._nothing,
            "gameover": self._nothing,
            "quit": self._end,
        }

    def run(self) -> None:
        """Answer commands until the end."""
        while not self._quit:
            line = self._ahead.pop(0) if self._ahead else self._lines.get()
            if line is None:
                return
            self._obey(line)

    def _obey(self, line: str) -> None:
        """Carry out a line; one that is wrong is reported and changes nothing."""
        words = line.split()
        if not words:
            return
        command = self._commands.get(words[0])
        if command is None:
            self._say(f"unknown command {words[0][:40]!r}")
            return
        try:
            command(words[1:])
        except (UsiError, ValueError) as error:
            self._say(str(error))

    def _say(self, text: str) -> None:
        self._write("info string " + " ".join(text.split()))

    # -- commands --------------------------------------------------------------------------------

    def _usi(self, words: list[str]) -> None:
        self._write(f"id name Keisei {__version__}")
        self._write("id author The Keisei authors")
        for line in self._options.declare():
            self._write(line)
        self._write("usiok")

    def _isready(self, words: list[str]) -> None:
        self._load()
        self._write("readyok")

    def _load(self) -> Thinker:
        """The thinker with the network that the options name; loaded again when that changes."""
        wanted = self._options.text("Model"), self._options.number("Threads")
        if self._thinker is None or self._loaded != wanted:
            try:
                self._thinker = load_thinker(*wanted)
            except KeiseiError as error:
                if self._thinker is None:
                    raise EngineStartError(str(error)) from error
                self._say(f"the model is kept as it was: {error}")
            self._loaded = wanted  # even if it failed: report it once
        return self._thinker

    def _setoption(self, words: list[str]) -> None:
        self._options.set(*read_setoption(words))

    def _usinewgame(self, words: list[str]) -> None:
        self._game = ShogiGame(move_limit=None)
        if self._thinker:
            self._thinker.forget()

    def _set_position(self, words: list[str]) -> None:
        # After a position that cannot be read, any move would be wrong.
        self._game, self._one_king = None, False
        position = read_position(words)
        try:
            self._game = ShogiGame.from_moves(
                position.start_sfen, position.moves, move_limit=None, check=True
            )
        except MissingKingError:
            self._one_king = True
            raise

    def _nothing(self, words: list[str]) -> None:
        pass

    def _end(self, words: list[str]) -> None:
        self._quit = True

    def _go(self, words: list[str]) -> None:
        go = read_go(words)
        answer = self._answer(go)
        if go.mate is not None:
            self._write(f"checkmate {answer or 'timeout'}")
        else:
            self._write(f"bestmove {answer or 'resign'}")

    def _answer(self, go: Go) -> str | None:
        """The answer to a `go`; None if there is none, but the GUI still needs a line."""
        if self._game is None:
            self._say("no position to think about: the last one could not be read")
            return "notimplemented" if self._one_king and go.mate is not None else None
        try:
            return self._think(self._game, go)
        except (EngineStartError, BrokenPipeError):  # no engine, or nobody listening
            raise
        except Exception as error:
            position = Position(self._game.start_sfen, tuple(self._game.moves))
            log.exception("an error while thinking about %s", position)
            self._say(f"an error while thinking: {error}")
            return None

    def _think(self, game: ShogiGame, go: Go) -> str:
        at_once = self._answer_without_thinking(game, go)
        if at_once is None:
            return think(self._load(), game, go, self._options, self._hear, self._write)
        if go.infinite or go.ponder:
            self._say(f"nothing to search; the answer will be {at_once}")
            self._wait_for_stop()
        return at_once

    def _answer_without_thinking(self, game: ShogiGame, go: Go) -> str | None:
        if not game.has_legal_move:
            return "nomate" if go.mate is not None else "resign"
        if go.mate is None and game.outcome and game.outcome.reason == "declaration":
            return "win"
        return None

    # -- while thinking --------------------------------------------------------------------------

    def _hear(self, wait: bool) -> str | None:
        """What arrived while thinking: "stop", "ponderhit", "next" (other work waits) or None."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._ahead.append(self._lines.get(block=wait and not self._ahead))
        behind_go = False  # what follows another `go` is meant for that one
        for line in list(self._ahead):
            words = (line or "").split()
            behind_go = behind_go or words[:1] == ["go"]
            if words[:1] == ["isready"] and self._ahead[0] == line:
                self._ahead.remove(line)
                self._write("readyok")
            elif words and words[0] in ("stop", "ponderhit") and not behind_go:
                self._ahead.remove(line)
                return words[0]
            elif words and words[0] in ("quit", "gameover"):
                return "stop"
            elif line is not None and (not words or words[0] not in self._commands):
                self._ahead.remove(line)
                self._obey(line)  # reports that it is unknown
        return "next" if self._ahead else None

    def _wait_for_stop(self) -> None:
        while self._hear(wait=True) is None:
            pass


class EngineStartError(KeiseiError):
    """The engine cannot play at all, for example because no network could be loaded."""


def run_engine(model: str, nodes: int) -> None:
    """Run a USI engine on standard input and output."""
    lines: Lines = queue.SimpleQueue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    # The tree has no reference cycles, and searching it for some would take tenths of a second.
    gc.disable()
    Engine(lines, _write_line, model, nodes).run()


def _read(lines: Lines) -> None:
    # Not sys.stdin.buffer: Python takes its lock when it exits, and aborts if a thread still waits
    # for a line in it.
    with open(sys.stdin.fileno(), "rb", closefd=False) as source:
        for line in source:
            lines.put(line.decode("utf-8", errors="replace").strip())
    lines.put(None)


def _write_line(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
