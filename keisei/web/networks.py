"""Networks that judge positions for the page: loaded once, shared by many threads.

Checkpoints are read without running code from them (see `keisei.runs.checkpoint`).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from keisei.errors import KeiseiError
from keisei.processes.machine import cores
from keisei.search import RankedMove, Score
from keisei.shogi import PolicyOutputMapper, Positions, ShogiGame
from keisei.shogi.actions import SIDES
from keisei.shogi.features import SIDE, Observations

if TYPE_CHECKING:
    from keisei.core.policy import Evaluation
    from keisei.trained import TrainedNetwork

MAX_CHECKPOINT = 192 * 1024 * 1024  # bytes; of a full network and its learner, 132 million
KEPT = 4  # networks that stay in memory although no game uses them
TOP = 5  # moves that are shown
_MAPPER = PolicyOutputMapper()

_Key = tuple[Path, int, int]  # a file with its time and size


class Observed(NamedTuple):
    """A position as a network sees it; without a board, so any thread may use it."""

    observation: Observations
    legal: npt.NDArray[np.int16]
    result: Score | None  # when the game is over


class Opinion(NamedTuple):
    """The likeliest moves, and how the position stands."""

    top: list[RankedMove]
    score: Score


def observe(game: ShogiGame) -> Observed:
    """The game's position."""
    result = None
    if game.outcome:
        winner = game.outcome.winner
        result = Score(winner, 1.0) if winner else Score(game.turn, 0.0)
    return Observed(game.observation(), game.legal_actions().astype(np.int16), result)


class Network:
    """A trained network that one thread at a time may use."""

    def __init__(self, trained: TrainedNetwork) -> None:
        self.steps = trained.steps
        self.curve = trained.curve
        self._policy = trained.policy
        self._lock = threading.Lock()

    def policy(self, positions: Positions) -> Evaluation:
        """What the network says of positions: a `Policy`."""
        with self._lock:
            return self._policy(positions)

    def look_at(self, observed: Sequence[Observed]) -> list[Opinion]:
        """What the network thinks of positions; the result where the game is over."""
        answers = iter(self._ask([one for one in observed if one.result is None]))
        return [
            next(answers) if one.result is None else Opinion([], one.result) for one in observed
        ]

    def draw(self, observed: Observed, temperature: float, seed: int) -> str:
        """A move by the policy alone, drawn as in the matches by which players are rated."""
        from keisei.evaluation.players import PolicyPlayer, Turns  # with PyTorch, as in `_load`

        positions = Positions.of([observed.observation], [observed.legal])
        player = PolicyPlayer(self.policy, "", seed, temperature)
        place = int(player.choose(Turns(**vars(positions)))[0])
        side = SIDES[observed.observation[SIDE]]
        return _MAPPER.action_to_usi(int(observed.legal[place]), side)

    def _ask(self, observed: Sequence[Observed]) -> list[Opinion]:
        if not observed:
            return []
        positions = Positions.of([one.observation for one in observed], [o.legal for o in observed])
        seen = self.policy(positions)
        probabilities = np.exp(seen.log_probs)
        answers = []
        for row, one in enumerate(observed):
            side = SIDES[one.observation[SIDE]]
            own = probabilities[positions.segment(row)]
            top = [
                RankedMove(_MAPPER.action_to_usi(int(one.legal[i]), side), float(own[i]))
                for i in np.argsort(-own, kind="stable").tolist()[:TOP]
            ]
            answers.append(Opinion(top, Score(side, float(seen.values[row])).by(self.curve)))
        return answers


class Networks:
    """Loads checkpoints, and keeps the ones used last.

    A network that is still in use is not loaded again: it is in memory once.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[_Key, Network] = OrderedDict()
        self._loaded: WeakValueDictionary[_Key, Network] = WeakValueDictionary()
        self._refused: OrderedDict[_Key, str] = OrderedDict()  # why: they are not read again
        self._lock = threading.Lock()  # one load at a time: loading takes memory

    def load(self, path: Path) -> Network:
        """The network of a checkpoint file."""
        status = path.stat()
        key = (path, status.st_mtime_ns, status.st_size)
        with self._lock:
            if key in self._refused:
                raise KeiseiError(self._refused[key])
            network = self._loaded.get(key)
            if network is None:
                network = self._loaded[key] = Network(self._try_to_load(key))
            self._kept[key] = network
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return network

    def _try_to_load(self, key: _Key) -> TrainedNetwork:
        try:
            return _load(key[0])
        except KeiseiError as error:
            self._refused[key] = str(error)
            if len(self._refused) > 1000:
                self._refused.popitem(last=False)
            raise


def _load(path: Path) -> TrainedNetwork:
    # Not at the top: PyTorch takes seconds to import, and a page without a game does not need it.
    import torch

    from keisei.trained import load_trained

    # A training run may need the cores more; half of them are enough to play.
    torch.set_num_threads(max(1, min(4, cores() // 2)))
    return load_trained(path, MAX_CHECKPOINT)
