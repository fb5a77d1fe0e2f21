"""The plain way: one agent after another, in one thread. Easy to follow, and to debug."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from keisei.errors import KeiseiError
from keisei.runs.trace import Trace
from keisei.worlds.agents import Agent
from keisei.worlds.central_ppo import States, together
from keisei.worlds.config import WorldRunConfig
from keisei.worlds.learning import merged, whole
from keisei.worlds.measures import Episodes, by_agent
from keisei.worlds.memory import NO_ACTION
from keisei.worlds.models import Ints, Learner, check_model
from keisei.worlds.registry import AnyWorld
from keisei.worlds.social import SocialRewards
from keisei.worlds.stack import assign, kept

Self = TypeVar("Self", bound="Environment")


@dataclass
class EpochResult:
    """What an epoch came to."""

    epoch: int
    returns: npt.NDArray[np.float64]  # of each agent in an episode, mean over the epoch's
    losses: dict[int, float] = field(default_factory=dict)  # by agent; of the newest training
    measures: dict[str, float] = field(default_factory=dict)  # of all agents together
    by_agent: dict[str, dict[int, float]] = field(default_factory=dict)  # of those that have it


class Environment:
    """A world and its agents.

    >>> from keisei.worlds import make_environment
    >>> environment = make_environment("treasure_hunt", ["copies=2", "parallel.enabled=false"])
    >>> results = environment.run_experiment(epochs=1)
    >>> results[0].returns.shape
    (2,)
    """

    def __init__(
        self,
        world: AnyWorld,
        agents: Sequence[Agent],
        config: WorldRunConfig,
        trace: Trace | None = None,
    ) -> None:
        if len(agents) != world.num_agents:
            raise KeiseiError(f"{world.name} has {world.num_agents} agents, not {len(agents)}")
        for agent in agents:
            check_model(agent.model, agent.name)
        self.world, self.agents, self.config = world, list(agents), config
        for (_, first), *others in self._crews():
            for _, learner in others:
                learner.state = first.state
        self.trace = trace or Trace(None)
        self.turn = 0
        self.epoch = 0  # the next one to run
        self.returns = np.zeros(len(agents))
        self.losses: dict[int, float] = {}
        self.learned: dict[int, dict[str, float]] = {}  # by agent; measured in its newest training
        self.episodes = Episodes(len(agents), world.copies)
        self.social = SocialRewards(config.social, len(agents), world.copies)
        self.failed_trainings = 0
        self._ready: dict[int, dict[str, Any]] = {}  # by agent: trained, but not yet taken over
        self.on_turn: Callable[[], None] | None = None  # for a viewer

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def learners(self) -> list[tuple[Agent, Learner]]:
        """The agents whose networks can be stacked, with their models."""
        return [(a, a.model) for a in self.agents if isinstance(a.model, Learner)]

    def _crews(self) -> list[list[tuple[Agent, Learner]]]:
        """The learners whose weights are the same: each alone, unless weights are shared."""
        crews: dict[object, list[tuple[Agent, Learner]]] = {}
        for agent, learner in self.learners:
            key = learner.algorithm if self.config.shared_weights else agent.index
            crews.setdefault(key, []).append((agent, learner))
        return list(crews.values())

    @property
    def own_learners(self) -> list[Agent]:
        """The agents that learn in a way of their own: by their model's `train_step`."""
        return [a for a in self.agents if a.learns and not isinstance(a.model, Learner)]

    # -- a turn --------------------------------------------------------------------------------

    def take_turn(self) -> None:
        """The world changes by itself; then each agent looks, decides, acts and remembers."""
        self.turn += 1
        world = self.world
        world.begin_turn()
        if self.config.turn_order != "sequential":
            states = [agent.pov(world) for agent in self.agents]
            actions = [a.get_action(state) for a, state in zip(self.agents, states, strict=True)]
            self._step(states, actions)
        else:
            states, actions = [], []
            for agent in self.agents:
                states.append(agent.pov(world))
                actions.append(agent.get_action(states[-1]))
                agent.act(world, actions[-1])
            self._remember(states, actions, *world.end_turn())

    def _seen(self, states: States) -> list[npt.NDArray[Any]]:
        """What each agent is given of what all of them see: its own, or all with its own first."""
        return [together(states, a.index) if a.sees_all else states[a.index] for a in self.agents]

    def next_turn(self) -> None:
        """A turn in the way of this environment."""
        self.take_turn()

    def _step(self, states: Sequence[npt.NDArray[Any]], actions: Sequence[Ints]) -> None:
        """Let all agents act on what all of them saw, in the order of the settings."""
        for agent, view in zip(self.agents, self.world.views, strict=True):
            if view.moves:
                self.world.moves[agent.index][:] = agent.moves
        present = self.world.present  # before they act
        if self.config.turn_order == "random":
            answer = self.world.step_in_random_order(np.stack(actions))
        else:
            answer = self.world.step(np.stack(actions))
        if present is not None:
            there = zip(present, actions, strict=True)
            actions = [np.where(here, action, NO_ACTION) for here, action in there]
        self._remember(states, actions, *answer)

    def _remember(
        self,
        states: Sequence[npt.NDArray[Any]],
        actions: Sequence[Ints],
        rewards: npt.NDArray[np.float32],
        dones: npt.NDArray[np.bool_],
        truncated: npt.NDArray[np.bool_],
    ) -> None:
        felt = self.social.felt(rewards)
        turn = zip(self.agents, states, actions, felt, dones, truncated, strict=True)
        for agent, *what in turn:
            agent.add_memory(*what)
        self.returns += rewards.mean(axis=1, dtype=np.float64)
        self.episodes.add(rewards, self.world.over, self.world.timed_out())
        self.social.end(self.world.over)
        if self.on_turn:
            self.on_turn()
        if truncated.any():
            beyond = self._seen(self.world.after_cut())
            for agent, state, cut in zip(self.agents, beyond, truncated, strict=True):
                agent.cut_memory(state, cut)

    # -- an experiment -------------------------------------------------------------------------

    def run_experiment(self, epochs: int | None = None) -> list[EpochResult]:
        """So many epochs (the config's, if not said), with a training every `train_interval`."""
        count = self.config.epochs if epochs is None else epochs
        results = [self.run_epoch() for _ in range(count)]
        self.finish()
        return results

    def run_epoch(self) -> EpochResult:
        """One episode in every copy, and what is to be learned after it."""
        with self.trace.span(f"epoch {self.epoch}", "collector"):
            self.collect_epoch()
        if self.epoch % self.config.parallel.train_interval == 0:
            self.train()
        return self._result()

    def _result(self) -> EpochResult:
        """What the epoch that is over came to."""
        own, each = by_agent(self.world.metrics())
        measures = self.episodes.measures() | own
        numbers = {name: dict(enumerate(values)) for name, values in each.items()}
        for agent in self.agents:
            for name, value in (self.learned.get(agent.index, {}) | agent.metrics()).items():
                numbers.setdefault(name, {})[agent.index] = value
        returns, losses = self.episodes.returns(), dict(self.losses)
        return EpochResult(self.epoch - 1, returns, losses, measures, numbers)

    def collect_epoch(self) -> None:
        """One episode in every copy."""
        for agent in self.agents:
            agent.start_epoch(self.epoch)
        self.world.reset()
        self.returns[:] = 0
        self.episodes.begin()
        self.social.begin()
        for _ in range(self.world.max_turns):
            self.next_turn()
        for agent in self.agents:
            agent.end_epoch(self.epoch)
        self.epoch += 1

    def train(self) -> None:
        """Let each learner take the training steps it is owed, one learner after another."""
        self.finish()
        self._train_own()
        with self.trace.span("train", "learner"):
            for members in self._crews():
                batches = whole([learner.draw_due() for _, learner in members])
                if not batches:
                    continue
                _, first = members[0]
                trained = first.algorithm.learn(first.state, merged(batches))
                for agent, learner in members:
                    self._note(agent.index, learner, trained.of(0))

    def _train_own(self) -> None:
        for agent in self.own_learners:
            with self.trace.span(f"train {agent.name}", "learner"):
                loss = agent.train_due()
            if loss is not None:
                self.losses[agent.index] = loss

    def finish(self) -> None:
        """Let the weights of the training that is done be those that act.

        Here that is one of a `ParallelEnvironment` whose state was loaded, if any.
        """
        for agent, learner in self.learners:
            if done := self._ready.pop(agent.index, None):
                assign(learner.state, done["state"])
                self._note(agent.index, learner, done)

    def _note(self, agent: int, learner: Learner, done: dict[str, Any]) -> None:
        """Keep what a training came to."""
        learner.note(done["failed"])
        self.losses[agent] = done["loss"]
        self.learned[agent] = done.get("measures", {})  # older checkpoints have none

    def close(self) -> None:
        """Let go of everything."""
        self.world.close()

    # -- keeping -------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next epoch depends on."""
        return {
            "world": self.world.state_dict(),
            "models": [agent.state_dict() for agent in self.agents],
            "owed": [agent.owed for agent in self.agents],
            "epoch": self.epoch,
            "turn": self.turn,
            "losses": dict(self.losses),
            "learned": {agent: dict(numbers) for agent, numbers in self.learned.items()},
            "failed_trainings": self.failed_trainings,
            "ready": {
                agent: {**done, "state": kept(done["state"])} for agent, done in self._ready.items()
            },
            "plans": {},  # what only a ParallelEnvironment has
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a `state_dict()`."""
        self.world.load_state_dict(state["world"])
        owed = state.get("owed", [0.0] * len(self.agents))  # runs of old have none
        for agent, model_state, steps in zip(self.agents, state["models"], owed, strict=True):
            if hasattr(agent.model, "load_state_dict"):
                agent.model.load_state_dict(model_state)
            agent.owed = float(steps)
        self.epoch, self.turn = int(state["epoch"]), int(state["turn"])
        self.losses, self.learned = dict(state["losses"]), dict(state.get("learned", {}))
        self.failed_trainings = int(state["failed_trainings"])
        self._ready = dict(state["ready"])
