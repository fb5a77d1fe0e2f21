"""What a run has done so far: counted by the trainer, shown by callbacks, kept in checkpoints."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from keisei.shogi import FinishedGame

RECENT_GAMES = 500


@dataclass
class Progress:
    """Counters of a run, and its latest numbers."""

    total_timesteps: int
    steps: int = 0
    updates: int = 0
    games: int = 0
    seconds: float = 0.0  # spent collecting and learning, over all sessions
    hours_before: float = 0.0  # processor hours of the network that the run began with
    reasons: Counter[str] = field(default_factory=Counter)
    recent_lengths: deque[int] = field(default_factory=lambda: deque(maxlen=RECENT_GAMES))
    recent_decided: deque[bool] = field(default_factory=lambda: deque(maxlen=RECENT_GAMES))
    last_evaluation: int | None = None  # the step at which one was last done; None: never
    last_checkpoint: int = 0  # that the interval asked for; stops save, too
    past_opponents: list[int] = field(default_factory=list)  # the steps of such checkpoints
    last_match_done: bool = False  # the longer evaluation at the end
    metrics: dict[str, float] = field(default_factory=dict)

    @property
    def fraction(self) -> float:
        """How much of the run is done, from 0 to 1."""
        return min(self.steps / self.total_timesteps, 1.0)

    @property
    def finished(self) -> bool:
        """Has the run played all its moves?"""
        return self.steps >= self.total_timesteps

    def count_games(self, finished: Iterable[FinishedGame]) -> None:
        """Count games that ended."""
        for ended in finished:
            self.games += 1
            self.reasons[ended.outcome.reason] += 1
            self.recent_lengths.append(ended.length)
            self.recent_decided.append(ended.outcome.winner is not None)

    def game_metrics(self) -> dict[str, float]:
        """What the recent games were like."""
        if not self.recent_lengths:
            return {}
        share = {f"ended by {why}": n / self.games for why, n in self.reasons.items()}
        return {
            "games": self.games,
            "game_length": sum(self.recent_lengths) / len(self.recent_lengths),
            "decided": sum(self.recent_decided) / len(self.recent_decided),
            **share,
        }

    def state_dict(self) -> dict[str, Any]:
        """Everything, as plain data."""
        lists = {name: list(v) for name, v in vars(self).items() if isinstance(v, deque)}
        return {**vars(self), **lists, "reasons": dict(self.reasons)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict()`; the goal stays as it is now."""
        for name in {one.name for one in fields(self)} & state.keys() - {"total_timesteps"}:
            now, value = getattr(self, name), state[name]
            # A number must be one: what is wrong is noticed now rather than in the middle of a run.
            setattr(self, name, type(now)(value) if isinstance(now, (int, float)) else value)
        self.reasons = Counter(state["reasons"])
        self.recent_lengths = deque(state["recent_lengths"], maxlen=RECENT_GAMES)
        self.recent_decided = deque(state["recent_decided"], maxlen=RECENT_GAMES)
        self.past_opponents = [int(step) for step in self.past_opponents]
        self.metrics = dict(self.metrics)
