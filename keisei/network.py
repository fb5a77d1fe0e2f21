"""A trained network as a library has it: what it would play, and what it finds by search."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keisei.core.policy import Evaluation
from keisei.errors import KeiseiError
from keisei.runs.run import Run
from keisei.search import Limit, Thinker
from keisei.shogi import Positions, ShogiGame
from keisei.trained import TrainedNetwork, export_network, find_checkpoint, load_trained


@dataclass(frozen=True)
class Analysis:
    """What a search found in a position, for the player to move."""

    move: str  # USI
    win_chance: float  # from 0 to 1; a draw is half a win
    mate: int | None  # moves of both sides until a proven mate; negative if the player is mated
    line: list[str]  # the expected moves, `move` first


class Network:
    """A trained network; `keisei.load` makes one.

    >>> net = load("shipped")
    >>> net.analyse(ShogiGame("4k4/9/4G4/9/9/9/9/9/4K4 b G 1"), nodes=50)
    Analysis(move='G*5b', win_chance=1.0, mate=1, line=['G*5b'])
    """

    def __init__(self, trained: TrainedNetwork) -> None:
        self.path = trained.path
        self.steps = trained.steps  # moves that it has learned from
        self._trained = trained

    def __repr__(self) -> str:
        return f"Network({str(self.path)!r}, steps={self.steps})"

    def evaluate(self, positions: Positions) -> Evaluation:
        """Log-probabilities of all legal moves of many positions at once, and raw values.

        >>> from keisei.shogi import VectorShogi
        >>> log_probs, values = load("shipped").evaluate(VectorShogi(num_games=8, seed=1).positions)
        >>> log_probs.shape, values.shape
        ((240,), (8,))
        """
        return self._trained.policy(positions)

    def policy(self, game: ShogiGame) -> dict[str, float]:
        """The legal moves with the probability of each, the likeliest first.

        >>> moves = load("shipped").policy(ShogiGame())
        >>> len(moves), round(sum(moves.values()), 3)
        (30, 1.0)
        """
        if game.outcome:
            return {}
        seen = self.evaluate(Positions.of([game.observation()], [game.legal_actions()]))
        chances = np.exp(seen.log_probs).tolist()
        moves = zip(game.legal_usi(), chances, strict=True)
        return dict(sorted(moves, key=lambda move: -move[1]))

    def analyse(self, game: ShogiGame, nodes: int = 400) -> Analysis:
        """Search a position: the best line, the chance to win, and a mate if one is proven.

        The chance is what players scored where the network's value was the same, if the network is
        calibrated (`keisei calibrate`). Every call searches from the beginning.

        >>> game = ShogiGame("4k4/9/4P4/9/9/9/9/9/4K4 b G 1")
        >>> load("shipped").analyse(game, nodes=20)
        Analysis(move='G*5b', win_chance=1.0, mate=1, line=['G*5b'])
        """
        if game.outcome:
            raise KeiseiError(f"there is nothing to analyse: the game is over ({game.outcome})")
        thinker = Thinker(self._trained.policy, curve=self._trained.curve)
        found = thinker.think(game, Limit(nodes=nodes))
        return Analysis(found.move, found.score.win_chance, found.score.mate, found.line)

    def export(self, file: str | Path) -> None:
        """Write the network alone to a new file: NAME.pt for Keisei, NAME.onnx for all others.

        keisei.load("overnight").export("overnight.onnx")
        """
        export_network(self.path, Path(file))


def load(name: str | Path | Run, runs: str | Path = "runs") -> Network:
    """A network by name: "shipped", a run (its newest checkpoint), or a file (.pt, .onnx).

    `runs` is the folder where runs are looked for.

    >>> load("shipped").steps > 0
    True
    """
    where = name.folder if isinstance(name, Run) else name
    return Network(load_trained(find_checkpoint(str(where), Path(runs))))
