"""Driving any USI engine as a process of its own, with a timeout for every wait."""

from __future__ import annotations

import contextlib
import queue
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import IO

from keisei.errors import KeiseiError
from keisei.usi.protocol import Position

# An engine may say anything, without end: more than this is not kept.
MOST_LINES = 1000
MOST_LETTERS = 10_000  # of a line

Lines = queue.Queue[str | None]


class EngineError(KeiseiError):
    """An engine cannot be started, died or stopped answering; the message names it."""


class UsiClient:
    """One engine process: `start` starts it, and `restart` starts it again after it died.

    ::

        with UsiClient(["/usr/games/fairy-stockfish"], {"Skill Level": "-5"}) as engine:
            engine.best_move(Position(moves=("7g7f",)), "depth 3")
    """

    def __init__(
        self,
        command: Sequence[str],
        options: Mapping[str, str] | None = None,
        *,
        start_timeout: float = 60.0,
        move_timeout: float = 60.0,
    ) -> None:
        self.command = list(command)
        self.name = self.command[0].rsplit("/", 1)[-1]
        self._options = dict(options or {})
        self._start_timeout = start_timeout
        self._move_timeout = move_timeout
        self.identity = self.name  # until the engine says what it is called
        # The newest lines that came before the one last waited for.
        self.passed: deque[str] = deque(maxlen=MOST_LINES)
        self._process: subprocess.Popen[str] | None = None
        self._lines: Lines = queue.Queue(MOST_LINES)

    def start(self) -> None:
        """Start the process and get it ready for a game."""
        self.launch()
        for name, value in self._options.items():
            self.send(f"setoption name {name} value {value}")
        self.send("isready")
        self.wait_for("readyok", self._start_timeout)
        self.send("usinewgame")

    def launch(self) -> None:
        """Start the process and ask for its name."""
        try:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            raise EngineError(f"cannot start the engine {self.command[0]}: {error}") from None
        self._lines = queue.Queue(MOST_LINES)
        reader = threading.Thread(
            target=_read, args=(self._process.stdout, self._lines), daemon=True
        )
        reader.start()
        self.send("usi")
        self.wait_for("usiok", self._start_timeout)
        said = [
            line.removeprefix("id name ") for line in self.passed if line.startswith("id name ")
        ]
        self.identity = said[0].strip() if said else self.name

    def restart(self) -> None:
        """End the process, whatever state it is in, and start another."""
        self.close()
        self.start()

    def send(self, line: str) -> None:
        """Send one line."""
        if self._process is None or self._process.stdin is None:
            raise EngineError(f"the engine {self.name} is not running")
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except OSError:
            raise EngineError(f"the engine {self.name} died before {line[:40]!r}") from None

    def wait_for(self, word: str, timeout: float) -> str:
        """Return the next line that begins with `word`; lines before it are kept in `passed`."""
        self.passed.clear()
        end = time.monotonic() + timeout
        while True:
            left = end - time.monotonic()
            try:
                line = self._lines.get(timeout=max(left, 0.001))
            except queue.Empty:
                left = 0
            if left <= 0:  # also of one that says other things without end
                raise EngineError(
                    f"the engine {self.name} did not say {word!r} within {timeout:g} s"
                )
            if line is None:
                raise EngineError(f"the engine {self.name} exited instead of saying {word!r}")
            if line.split()[:1] == [word]:
                return line
            self.passed.append(line)

    def start_thinking(self, position: Position, go: str) -> None:
        """Ask for a move; `go` holds the arguments of USI's `go` command."""
        self.send(str(position))
        self.send(f"go {go}")

    def answer(self) -> str:
        """The move found after `start_thinking`: a USI move, "resign" or "win"."""
        words = self.wait_for("bestmove", self._move_timeout).split()
        if len(words) < 2:
            raise EngineError(f"the engine {self.name} said 'bestmove' without a move")
        return words[1]

    def best_move(self, position: Position, go: str) -> str:
        """Ask for a move and wait for it."""
        self.start_thinking(position, go)
        return self.answer()

    def close(self) -> None:
        """End the process: ask it to quit, then kill it."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(OSError, ValueError):
            if process.stdin:
                process.stdin.write("quit\n")
                process.stdin.close()
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=10)

    def __enter__(self) -> UsiClient:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _read(source: IO[str] | None, lines: Lines) -> None:
    if source is not None:
        with contextlib.suppress(OSError, ValueError):
            while line := source.readline(MOST_LETTERS):
                _put(lines, line.rstrip("\n"))
        source.close()
    _put(lines, None)


def _put(lines: Lines, line: str | None) -> None:
    """Add a line; when nobody reads and it is full, the oldest one goes."""
    if lines.full():
        with contextlib.suppress(queue.Empty):
            lines.get_nowait()
    lines.put_nowait(line)  # this thread alone adds
