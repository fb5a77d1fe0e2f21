"""`keisei calibrate`: what a network's values stand for, from games of its own."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import numpy.typing as npt

from keisei.core.policy import Evaluation, Policy
from keisei.curve import Curve
from keisei.errors import KeiseiError
from keisei.evaluation.match import MatchGame, play_games
from keisei.evaluation.openings import load_openings
from keisei.evaluation.players import PolicyPlayer, Turns
from keisei.runs.checkpoint import load_checkpoint, save_checkpoint
from keisei.shogi import Positions
from keisei.shogi.actions import SIDES
from keisei.shogi.features import SIDE
from keisei.trained import load_trained

Floats = npt.NDArray[np.float64]

POINTS = 20  # of a curve, between its ends
TEMPERATURE = 0.5  # as in evaluations


class _Recorder(PolicyPlayer):
    """Plays by its policy, and keeps whose turn it was and the value of each position, by game."""

    def __init__(self, policy: Policy, seed: int) -> None:
        super().__init__(self._evaluate, "self", seed, TEMPERATURE)
        self._network = policy
        self._values: list[float] = []
        self.seen: defaultdict[int, list[tuple[str, float]]] = defaultdict(list)

    def _evaluate(self, positions: Positions) -> Evaluation:
        evaluation = self._network(positions)
        self._values = evaluation.values.tolist()
        return evaluation

    def choose(self, turns: Turns) -> npt.NDArray[np.int64]:
        places = super().choose(turns)
        sides = turns.observations[:, SIDE].tolist()
        for game, side, value in zip(turns.games, sides, self._values, strict=True):
            self.seen[game].append((SIDES[side], value))
        return places


def play_for_values(policy: Policy, games: int, seed: int = 1) -> tuple[Floats, Floats, Floats]:
    """Each position's value for its mover, the mover's score in the end, and the game's number.

    The games begin with openings, as those of matches do; what is played in them does not count.
    """
    player = _Recorder(policy, seed)
    match = play_games(player, player, games, seed=seed, openings=load_openings(seed))
    rows = [
        (value, _score_of(side, game), game.number)
        for game in match.games
        for side, value in player.seen[game.number]
    ]
    found = np.array(rows, dtype=np.float64).reshape(-1, 3)
    return found[:, 0], found[:, 1], found[:, 2]


def _score_of(side: str, game: MatchGame) -> float:
    winner = game.outcome and game.outcome.winner
    return 0.5 if winner is None else float(winner == side)


def fit_curve(values: Floats, scores: Floats) -> Curve:
    """The curve through the means of equally many positions each, made to rise."""
    order = np.argsort(values, kind="stable")
    groups = [
        (float(values[part].mean()), float(scores[part].mean()), len(part))
        for part in np.array_split(order, POINTS)
        if len(part)
    ]
    rising: list[tuple[float, float, int]] = []
    for group in groups:  # neighbours that fall are one group (pool adjacent violators)
        rising.append(group)
        while len(rising) > 1 and rising[-2][1] >= rising[-1][1]:
            (v, s, n), (w, t, m) = rising.pop(-2), rising.pop()
            rising.append(((v * n + w * m) / (n + m), (s * n + t * m) / (n + m), n + m))
    points = [one for one in rising if -1 < one[0] < 1]
    return Curve(
        (-1.0, *(value for value, _, _ in points), 1.0),
        (0.0, *(score for _, score, _ in points), 1.0),
    )


def calibrate(path: Path, games: int, seed: int = 1) -> Curve:
    """Fit the curve of a network by games of its own, and store it in its file."""
    values, scores, _ = play_for_values(load_trained(path).policy, games, seed)
    if len(values) < 100 * POINTS:
        raise KeiseiError(
            f"{games} games had only {len(values)} positions, and {100 * POINTS} are needed: "
            "play more (--games)"
        )
    curve = fit_curve(values, scores)
    state = load_checkpoint(path)
    state["curve"] = {"values": list(curve.values), "scores": list(curve.scores)}
    save_checkpoint(path, state)
    return curve
