"""A game in the terminal against a network."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from keisei.errors import KeiseiError
from keisei.search import Limit, Report, SearchSettings, Thinker
from keisei.shogi import ShogiGame
from keisei.shogi.actions import Side
from keisei.shogi.board_text import board_text
from keisei.shogi.records import GameRecord, write_record
from keisei.shogi.rules import HANDICAPS, START_SFEN
from keisei.trained import TrainedNetwork, find_checkpoint, load_trained

AGENT = "Keisei"
HINT_NODES = 100  # at least
SEARCH = SearchSettings(leaves=8)  # as on the page and in matches
MOST_NODES = 100_000  # in memory: less than a gigabyte
HELP = """Enter a move in USI (7g7f, 8h2b+, P*5e) or western notation (P-7f, Bx2b+):
files are 9 to 1 from the left, ranks a to i from the top; + promotes, * drops.
On the board, v stands before White's pieces, and ^ (Black) or V (White) before the last one moved.

  moves      all legal moves
  hint       what Keisei would play
  undo       take back your last move
  resign     resign the game
  save FILE  save the game as .kif, .ki2, .csa or .usi
  quit       leave (or press Ctrl-D)"""


def play(
    network: str,
    nodes: int,
    side: str,
    start: str,
    console: Console,
    runs: Path = Path("runs"),
) -> None:
    """Play against a named network from `start`: "startpos", a handicap's name or an SFEN."""
    if side not in ("black", "white", "either"):
        raise KeiseiError(f"--side must be black, white or either, not {side!r}")
    own: Side = (
        "white" if side == "white" or (side == "either" and random.random() < 0.5) else "black"
    )
    sfen = {"startpos": START_SFEN, **HANDICAPS}.get(start, start)
    try:
        game = ShogiGame(sfen)
    except ValueError as error:
        names = ", ".join(HANDICAPS)
        raise KeiseiError(
            f"--start must be startpos, an SFEN or one of {names}: {error}"
        ) from error
    trained = load_trained(find_checkpoint(network, runs))
    TerminalGame(trained, nodes, own, game, console).run()


class TerminalGame:
    """One game between a person and a network; `run` returns when the person leaves."""

    def __init__(
        self, trained: TrainedNetwork, nodes: int, side: Side, game: ShogiGame, console: Console
    ) -> None:
        self.game = game
        self._side, self._nodes, self._console = side, nodes, console
        self._thinker = Thinker(trained.policy, SEARCH, curve=trained.curve, most_nodes=MOST_NODES)
        self._commands: dict[str, Callable[[], None]] = {
            "help": lambda: self._say(HELP),
            "?": lambda: self._say(HELP),
            "moves": self._list_moves,
            "hint": self._hint,
            "undo": self._undo,
            "resign": self._resign,
        }

    def run(self) -> None:
        """Play, and carry out what the person types."""
        self._say(f"You are {self._side}. Type `help` to see how to enter moves.")
        try:
            while True:
                if self.game.outcome is None and self.game.turn != self._side:
                    self._reply()
                self._show()
                if not self._listen():
                    return
        except (EOFError, KeyboardInterrupt):
            self._console.print()

    # -- what the person does --------------------------------------------------------------------

    def _listen(self) -> bool:
        """Carry out commands until the position changes; False when the person leaves."""
        before = (self.game.moves, self.game.outcome)
        while (self.game.moves, self.game.outcome) == before:
            line = self._console.input(
                "[bold]your move:[/] " if not self.game.outcome else "> "
            ).strip()
            word, _, rest = line.partition(" ")
            if word in ("quit", "exit", "q"):
                return False
            try:
                if word == "save":
                    self._save(rest.strip())
                elif line in self._commands:
                    self._commands[line]()
                elif line:
                    self._move(line)
            except KeiseiError as error:
                self._say(str(error))
        return True

    def _move(self, text: str) -> None:
        if self.game.outcome:
            raise KeiseiError("the game is over: type `undo`, `save FILE` or `quit`")
        wanted = text.lower()
        for usi, name in self._legal().items():
            if wanted in (usi.lower(), name.lower()):
                self.game.push_usi(usi)
                return
        raise KeiseiError(f"{text[:40]!r} is not a legal move here: type `moves` to list them")

    def _legal(self) -> dict[str, str]:
        """The legal moves in USI, each with its western name."""
        return {usi: self.game.name(usi).western for usi in self.game.legal_usi()}

    def _list_moves(self) -> None:
        self._say("  ".join(f"{name} ({usi})" for usi, name in self._legal().items()))

    def _resign(self) -> None:
        if not self.game.outcome:
            self.game.resign()

    def _undo(self) -> None:
        """Go back to the person's previous turn."""
        if self.game.outcome and self.game.outcome.reason == "resignation":
            self.game.undo()
            return
        plies = 2 if self.game.turn == self._side else 1
        if len(self.game.moves) < plies:
            raise KeiseiError("you have no move to take back")
        for _ in range(plies):
            self.game.undo()

    def _save(self, name: str) -> None:
        if not name:
            raise KeiseiError("`save` needs a file name, as in `save game.kif`")
        names = ("Human", AGENT) if self._side == "black" else (AGENT, "Human")
        try:
            path = Path(name).expanduser()
            if path.exists():
                raise KeiseiError(f"{path} already exists: choose another name")
            write_record(GameRecord.from_game(self.game, *names), path)
        except KeiseiError:
            raise
        except (OSError, RuntimeError, ValueError) as error:  # no such user, not a file name
            reason = getattr(error, "strerror", None) or error
            raise KeiseiError(
                f"cannot save as {name[:80]!r} ({reason}): choose another place"
            ) from None
        self._say(f"saved as {path}")

    def _hint(self) -> None:
        if not self.game.outcome:
            report = self._thinker.think(self.game, Limit(max(self._nodes, HINT_NODES)))
            self._say(f"{AGENT} would play {self._name(report)}")

    # -- what the network does -------------------------------------------------------------------

    def _reply(self) -> None:
        with self._console.status("thinking"):
            report = self._thinker.think(self.game, Limit(self._nodes))
        self._say(f"{AGENT} plays {self._name(report)}")
        self.game.push_usi(report.move)

    def _name(self, report: Report) -> str:
        """A move in both notations and its score: "P-7f (7g7f), 52 % to win"."""
        name, score = self._legal()[report.move], report.score
        chance = f"{100 * score.win_chance:.0f} % to win"
        if score.mate:
            chance = f"{'mates' if score.mate > 0 else 'mated'} in {abs(score.mate)}"
        return f"{name} ({report.move}), {chance}"

    # -- what is shown ---------------------------------------------------------------------------

    def _show(self) -> None:
        self._console.print(board_text(self.game))
        if self.game.outcome:
            self._say(f"The game is over: {self.game.outcome}. Type `undo`, `save FILE` or `quit`.")

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False)
