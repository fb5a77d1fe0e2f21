"""What decides for an agent: a learner, chance, a script, or a person at the keyboard.

Every model answers for all copies of the world at once: observations [copies, ...] in, actions
[copies] out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from keisei.errors import KeiseiError
from keisei.random_streams import RandomStreams
from keisei.worlds.algorithm import IMPOSSIBLE, Algorithm, pick
from keisei.worlds.memory import Arrays, Buffer
from keisei.worlds.novelty import Novelty
from keisei.worlds.stack import kept

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

log = logging.getLogger(__name__)


class Model:
    """The base of the models here; others may be any object with what `check_model` asks for."""

    learns = True  # is it to be trained?
    memory: Buffer | None = None

    def start_epoch_action(self, epoch: int) -> None:
        """An epoch begins."""

    def end_epoch_action(self, epoch: int) -> None:
        """An epoch is over."""

    def act(self, observations: npt.NDArray[Any]) -> Ints:
        """An action for each copy."""
        raise NotImplementedError

    def remember(self, state: Any, action: Any, reward: Any, done: Any) -> None:
        """Keep a turn, if there is a memory; `done` is a true end, after which nothing counts."""
        if self.memory is not None:
            self.memory.add(state, action, reward, done)

    def cut(self, state: Any, truncated: Any) -> None:
        """The turn before was cut off by time in these copies; `state` would have been next."""
        if self.memory is not None:
            self.memory.cut(state, truncated)

    def train_step(self) -> float | None:
        """One training step; the loss, or None if there is nothing to learn (yet)."""
        return None

    def metrics(self) -> dict[str, float]:
        """Numbers of the epoch that is over, for the run's metrics."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Everything that a run must keep."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a `state_dict()`."""


def check_model(model: object, name: str) -> None:
    """Refuse a model that could not act, or that would never learn or be kept.

    What a subclass of `Model` inherits from it does nothing, so it does not count.
    """

    def has(method: str) -> bool:
        found = getattr(model, method, None)
        return callable(found) and getattr(found, "__func__", None) is not getattr(Model, method, 0)

    missing = [] if has("act") or has("take_action") else ["act(observations) -> actions"]
    if getattr(model, "learns", True):
        if not (has("remember") or hasattr(getattr(model, "memory", None), "add")):
            missing.append("memory with add(state, action, reward, done), or remember(...)")
        if not has("train_step"):
            missing.append("train_step() -> loss")
        missing += [m for m in ("state_dict", "load_state_dict") if not has(m)]
    if missing:
        raise KeiseiError(
            f"{name}: {type(model).__name__} cannot be trained: it lacks {'; '.join(missing)} "
            "(set `learns = False` in a model that only acts)"
        )


class RandomModel(Model):
    """Every action is as likely as any other.

    >>> RandomModel(num_actions=4, copies=3, seed=1).act(np.zeros((3, 81))).shape
    (3,)
    """

    learns = False

    def __init__(
        self, num_actions: int, copies: int, seed: int, mask: int = 0, moves: int = 0
    ) -> None:
        self.num_actions = num_actions
        self.moves = np.zeros((copies, moves)) if moves else None
        self.streams = RandomStreams(seed, copies)
        self._mask = mask  # as in `View`

    def act(self, observations: npt.NDArray[Any]) -> Ints:
        if self.moves is not None:
            self.moves = self.streams.uniforms(self.moves.shape[1]).T * 2 - 1
            return np.zeros(len(self.moves), np.int64)
        share = self.streams.uniform()
        if self._mask:
            return pick(observations[:, -self._mask :] > 0, share)
        return (share * self.num_actions).astype(np.int64)

    def state_dict(self) -> dict[str, Any]:
        return {"streams": self.streams.state.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if set(state) != {"streams"}:
            raise ValueError(
                "agents that have learned would become random ones and forget it all; start a new "
                "run for that"
            )
        self.streams.state = state["streams"].copy()


class ScriptedModel(Model):
    """Does what a function says: observations [copies, ...] to actions [copies].

    >>> north = ScriptedModel(lambda observations: np.zeros(len(observations), np.int64))
    >>> north.act(np.zeros((3, 81))).tolist()
    [0, 0, 0]
    """

    learns = False

    def __init__(self, script: Callable[[npt.NDArray[Any]], Ints]) -> None:
        self._script = script

    def act(self, observations: npt.NDArray[Any]) -> Ints:
        return np.asarray(self._script(observations), np.int64)


class HumanModel(Model):
    """Asks a person for the action of the one copy there is, with one key.

    >>> keys = iter("xw")
    >>> person = HumanModel({"w": 0, "s": 1}, read_key=lambda: next(keys))
    >>> person.act(np.zeros((1, 81))).tolist()  # x means nothing, so it waits for the next
    [0]
    """

    learns = False

    def __init__(self, keys: Mapping[str, int], read_key: Callable[[], str]) -> None:
        self.keys = dict(keys)
        self._read_key = read_key

    def act(self, observations: npt.NDArray[Any]) -> Ints:
        if len(observations) != 1:
            raise KeiseiError(f"a person plays in one copy of a world, not {len(observations)}")
        while (key := self._read_key()) not in self.keys:
            if key in ("\x03", "\x1b", "q"):
                raise KeyboardInterrupt
        return np.array([self.keys[key]])


class Learner(Model):
    """A model with a network, a memory and random streams of its own; it shares none of them.

    `state` is one row (see `stack`); in a `ParallelEnvironment` it is a row of the stack.
    """

    def __init__(
        self, algorithm: Algorithm, copies: int, seed: int, turns_per_training: int = 100
    ) -> None:
        self.algorithm = algorithm
        own = np.random.SeedSequence(seed).generate_state(3)
        self.state = algorithm.new_state(torch.Generator().manual_seed(int(own[0])))
        self.streams = RandomStreams(int(own[1]), copies)
        self.rng = np.random.default_rng(int(own[2]))
        view = algorithm.view
        turns = algorithm.memory_turns(copies, turns_per_training)
        self.memory: Buffer = Buffer(turns, copies, view.shape, view.dtype, algorithm.extras)
        curious = algorithm.settings.novelty > 0 and view.table is not None
        self.novelty = Novelty(view, algorithm.settings.novelty) if curious else None
        self.copies, self.epoch = copies, 0
        size = algorithm.network.carried
        self.carried = np.zeros((copies, size), np.float32)  # from the turn before
        self._first = np.ones(copies, np.bool_)  # turn of an episode
        self.turns = 0  # remembered since the last training began
        self._trained = False  # on these turns
        self.owed = 0.0  # training steps
        self.failures = 0  # training steps that came to nothing
        self._extras: dict[str, Any] = {}
        self.moves: Floats | None = None  # the newest, where actions are numbers [copies, numbers]
        self._warned = False

    def start_epoch_action(self, epoch: int) -> None:
        self.epoch = epoch
        self._forget(np.ones(self.copies, np.bool_))

    def _forget(self, where: npt.NDArray[np.bool_]) -> None:
        """Carry nothing into the next turn: a new episode begins there."""
        self._first = where
        self.carried[where] = 0

    def act(self, observations: npt.NDArray[Any]) -> Ints:
        return self.choose(*self._answer(observations))

    def _answer(self, observations: npt.NDArray[Any]) -> tuple[Floats, Floats]:
        """What the network says, and what it would carry on."""
        with torch.inference_mode():
            inputs = self.algorithm.inputs_of(np.asarray(observations)[None])
            carried = self.algorithm.tensor(self.carried)[None]
            scores, carried = self.algorithm.answer(self.state, inputs, carried)
        return scores[0].cpu().numpy(), carried[0].cpu().numpy()

    def choose(self, scores: Floats, carried: Floats) -> Ints:
        """Actions from the network's outputs [copies, outputs], by the agent's own stream.

        `carried` is what the network carries into the next turn.
        """
        broken = ~np.isfinite(scores).all(axis=1)
        actions, self._extras = self.algorithm.choose(scores, self.streams, self.epoch)
        self.moves = self._extras.get("move")
        if self.algorithm.network.carried:
            self._extras |= {"carried": self.carried, "first": self._first}
            self.carried = carried
        if broken.any():
            if not self._warned:
                log.warning(
                    "a network returns NaN: its agent acts at random there; the others continue"
                )
                self._warned = True
            possible = scores[:, : self.algorithm.num_actions] != IMPOSSIBLE
            chance = pick(possible, self.streams.uniform())
            actions = np.where(broken, chance, actions)
        return actions

    def remember(self, state: Any, action: Any, reward: Any, done: Any) -> None:
        self.memory.add(state, action, reward, done, **self._extras)
        if self.algorithm.network.carried:
            self._forget(np.asarray(done, np.bool_))
        self.turns = 1 if self._trained else self.turns + 1
        self._trained = False
        self.owed += self.copies * self.algorithm.settings.replay_ratio

    def cut(self, state: Any, truncated: Any) -> None:
        scores, _ = self._answer(state)
        extras = self.algorithm.extras_of(scores)
        if self.algorithm.network.carried:
            extras |= {"carried": self.carried, "first": self._first}
        self.memory.cut(state, truncated, **extras)
        if self.algorithm.network.carried:
            self._forget(self._first | truncated)
        self.turns += 1

    def draw_due(self) -> Arrays | None:
        """The minibatches [steps, batch, ...] of all training steps that are owed."""
        steps = int(self.owed + 1e-9)
        return self.draw(steps) if steps else None

    def draw(self, steps: int) -> Arrays | None:
        """So many minibatches, drawn from this agent's memory alone by its own stream."""
        if len(self.memory) < self.algorithm.least_turns or not self.memory.has_steps:
            return None
        turns = min(self.turns, len(self.memory))
        if self.novelty and not self._trained:
            self.novelty.count(self.memory.newest(turns)["state"])
        batches = self.algorithm.draw(self.memory, steps, turns, self.rng, self.novelty)
        self.owed = max(self.owed - steps, 0.0)
        self._trained = True
        return batches

    def metrics(self) -> dict[str, float]:
        return self.algorithm.epoch_measures(self.epoch)

    def train_step(self) -> float | None:
        batches = self.draw(1)
        if batches is None:
            return None
        trained = self.algorithm.learn(
            self.state, {name: array[None] for name, array in batches.items()}
        )
        self.note(int(trained.failed[0]))
        return float(trained.losses[0])

    def note(self, failed: int) -> None:
        """Count training steps that came to nothing, and say so the first time."""
        if failed and not self.failures:
            log.warning("a learner's loss is not finite: it keeps its weights; the others continue")
        self.failures += failed

    def state_dict(self) -> dict[str, Any]:
        return {
            "state": kept(self.state),
            "memory": self.memory.get_buffer_snapshot(),
            "streams": self.streams.state.copy(),
            "rng": self.rng.bit_generator.state,
            "novelty": self.novelty.counts.copy() if self.novelty else None,
            "counts": [self.epoch, self.turns, self.owed, self.failures, self._trained],
        }

    def load_policy(self, state: dict[str, Any]) -> None:
        """Act as the model of a `state_dict()` would, in however many copies."""
        for name, tensor in self.state.items():  # in place: they may be rows of a stack
            if tensor.shape != state["state"][name].shape:
                raise ValueError(f"{name} is {state['state'][name].shape}, not {tensor.shape}")
            tensor.copy_(state["state"][name])

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.load_policy(state)
        self.memory.load_buffer_snapshot(state["memory"])
        self.streams.state = state["streams"].copy()
        self.rng.bit_generator.state = state["rng"]
        if self.novelty and state.get("novelty") is not None:  # else it begins to count now
            self.novelty.counts[:] = state["novelty"]
        self.epoch, self.turns, self.owed, self.failures, self._trained = state["counts"]
