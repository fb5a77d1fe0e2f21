"""An agent: a place in the world, and a model that decides for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from keisei.errors import KeiseiError
from keisei.processes.machine import choose_device
from keisei.worlds.algorithm import Algorithm
from keisei.worlds.central_ppo import CentralPPO, together
from keisei.worlds.config import LearnerSettings, PPOSettings, WorldRunConfig
from keisei.worlds.continuous_ppo import ContinuousPPO
from keisei.worlds.double_dqn import DoubleDQN
from keisei.worlds.iqn import IQN
from keisei.worlds.models import Ints, Learner, RandomModel
from keisei.worlds.own_code import load_own
from keisei.worlds.ppo import PPO
from keisei.worlds.registry import AnyWorld

ALGORITHMS: dict[str, type[Algorithm]] = {"double_dqn": DoubleDQN, "iqn": IQN, "ppo": PPO}
REPLAY_RATIO = 0.01  # of models that do not say theirs


@dataclass
class Agent:
    """The agent number `index` of a world; `model` decides, and remembers in `model.memory`."""

    index: int
    model: Any  # a `Model`, or any object with what `check_model` asks for
    owed: float = 0.0  # training steps, of a model that is not a `Learner`

    @property
    def name(self) -> str:
        return f"agent_{self.index}"

    @property
    def learns(self) -> bool:
        """Is its model to be trained?"""
        return getattr(self.model, "learns", True)

    @property
    def moves(self) -> npt.NDArray[Any]:
        """The numbers of its newest action [copies, numbers], in a world that asks for some."""
        moves = getattr(self.model, "moves", None)
        if moves is None:
            raise KeiseiError(
                f"{self.name}: {type(self.model).__name__} acts in a world whose actions are "
                "numbers: it must have them in `moves` [copies, numbers], from -1 to 1"
            )
        return np.asarray(moves)

    @property
    def sees_all(self) -> bool:
        """Has its model a central critic, which looks at what the others see as well?"""
        return isinstance(self.model, Learner) and self.model.algorithm.view.own is not None

    def pov(self, world: AnyWorld) -> npt.NDArray[Any]:
        """What it sees in each copy."""
        return together(world.pov(), self.index) if self.sees_all else world.pov(self.index)

    def get_action(self, state: npt.NDArray[Any]) -> Ints:
        """What it does about it."""
        act = getattr(self.model, "act", None) or self.model.take_action
        actions = np.asarray(act(state), np.int64)
        if actions.shape != (len(state),):
            raise KeiseiError(
                f"{self.name}: {type(self.model).__name__} gave actions of the shape "
                f"{actions.shape}; it must give one for each copy: ({len(state)},)"
            )
        return actions

    def act(self, world: AnyWorld, action: Ints) -> npt.NDArray[np.float32]:
        """Do it; returns what it got by that at once, in each copy."""
        return world.let_act(self.index, action)

    def can_act(self, world: AnyWorld) -> npt.NDArray[np.bool_]:
        """Where it is there and not timed out [copies]."""
        away = world.timed_out()
        able = np.ones(world.copies, np.bool_) if away is None else ~away[self.index]
        return able if world.present is None else able & world.present[self.index]

    def is_done(self, world: AnyWorld) -> npt.NDArray[np.bool_]:
        """Where its episode is over: it has left, or nobody is there any more [copies]."""
        gone = world.over.copy()
        return gone if world.present is None else gone | ~world.present[self.index]

    def add_memory(self, state: Any, action: Any, reward: Any, done: Any, truncated: Any) -> None:
        """Remember a turn, in its own memory."""
        if not self.learns:
            return
        remember = getattr(self.model, "remember", None) or self.model.memory.add
        # To a model that knows no cuts, one is an end: nothing must be learned across it.
        remember(state, action, reward, done if self._cut else done | truncated)
        if not isinstance(self.model, Learner):  # which counts for itself
            self.owed += len(action) * getattr(self.model, "replay_ratio", REPLAY_RATIO)

    def cut_memory(self, state: Any, truncated: Any) -> None:
        """Remember that the turn before was cut off by time, and what would have been seen next."""
        if self.learns and self._cut:
            self._cut(state, truncated)

    @property
    def _cut(self) -> Any:
        """What to call at a cut: the model, else its memory, else nothing."""
        memory = getattr(self.model, "memory", None)
        return getattr(self.model, "cut", None) or getattr(memory, "cut", None)

    def start_epoch(self, epoch: int) -> None:
        """Tell the model that an epoch begins, if it wants to know."""
        getattr(self.model, "start_epoch_action", _ignore)(epoch)

    def end_epoch(self, epoch: int) -> None:
        """Tell the model that an epoch is over, if it wants to know."""
        getattr(self.model, "end_epoch_action", _ignore)(epoch)

    def metrics(self) -> dict[str, float]:
        """What its model tells of the epoch that is over."""
        told: Mapping[str, Any] = getattr(self.model, "metrics", dict)()
        return {str(name): float(value) for name, value in told.items()}

    def train_due(self) -> float | None:
        """Take the training steps that are owed, one after another; their mean loss."""
        steps = int(self.owed + 1e-9)
        self.owed -= steps
        losses = [self.model.train_step() for _ in range(steps)]
        known = [float(loss) for loss in losses if loss is not None]
        return float(np.mean(known)) if known else None

    def state_dict(self) -> dict[str, Any]:
        """Everything that a run must keep of its model."""
        state: dict[str, Any] = getattr(self.model, "state_dict", dict)()
        return state


def make_agents(config: WorldRunConfig, world: AnyWorld) -> list[Agent]:
    """The agents of a run, each with a seed of its own."""
    if len(config.agents) > world.num_agents:
        raise KeiseiError(
            f"agents: {len(config.agents)} are named, but {world.name} has {world.num_agents}"
        )
    return [Agent(i, _make_model(i, config, world)) for i in range(world.num_agents)]


def make_algorithm(kind: str, settings: LearnerSettings, world: AnyWorld, index: int) -> Algorithm:
    """How the agent of this number learns."""
    view, actions = world.views[index], world.num_actions[index]
    central = isinstance(settings, PPOSettings) and settings.central_critic
    if view.moves and (central or not isinstance(settings, PPOSettings)):
        raise KeiseiError(
            f"agent {index}: the actions of {world.name} are numbers, which only ppo without a "
            "central critic learns: agents=[ppo]"
        )
    if view.moves and isinstance(settings, PPOSettings):
        return ContinuousPPO(view, actions, settings)
    if not central:
        return ALGORITHMS[kind](view, actions, settings)
    alike = all(one == view for one in world.views)
    if not alike or (view.table is None and len(view.shape) > 1):
        raise KeiseiError(
            f"agent {index}: a central critic needs agents that all see windows or rows of numbers "
            f"of one size, which those of {world.name} do not"
        )
    assert isinstance(settings, PPOSettings)
    return CentralPPO(view.of_all(world.num_agents), actions, settings)


def _make_model(index: int, config: WorldRunConfig, world: AnyWorld) -> Any:
    kind, settings = config.agent(index)
    seed = int(np.random.SeedSequence([config.seed, index + 1]).generate_state(1)[0])
    view, actions = world.views[index], world.num_actions[index]
    if kind == "random":
        return RandomModel(actions, world.copies, seed, view.mask, view.moves)
    if isinstance(settings, LearnerSettings):
        algorithm = make_algorithm(kind, settings, world, index)
        algorithm.device = choose_device(config.device, "device")
        turns = config.parallel.train_interval * world.max_turns
        return Learner(algorithm, world.copies, seed, turns)
    make = load_own(kind, "model", "my_module:Mine")
    try:
        return make(view=view, num_actions=actions, copies=world.copies, seed=seed, **settings)
    except Exception as error:  # the user's code: it may raise anything
        reason = f"{type(error).__name__}: {error}"
        raise KeiseiError(
            f"agent {index}: {kind} cannot be made with the settings {settings}: {reason}"
        ) from error


def _ignore(epoch: int) -> None:
    pass
