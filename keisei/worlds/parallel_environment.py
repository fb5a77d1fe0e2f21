"""The fast way: all agents at once, and learning beside collecting; each agent still by itself."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from keisei.runs.trace import Trace
from keisei.worlds.agents import Agent, make_agents
from keisei.worlds.algorithm import Algorithm
from keisei.worlds.calibration import Plan, calibrate
from keisei.worlds.config import WorldRunConfig
from keisei.worlds.environment import Environment, EpochResult
from keisei.worlds.learner_process import ProcessLearning
from keisei.worlds.learning import HereLearning, ThreadLearning, TrainingFailed, merged, whole
from keisei.worlds.memory import Arrays
from keisei.worlds.models import Ints, Learner
from keisei.worlds.registry import AnyWorld
from keisei.worlds.split_world import open_world
from keisei.worlds.stack import State, join, rows, spread

log = logging.getLogger(__name__)


@dataclass
class Team:
    """Learners with equal algorithms, whose networks are one stack. They share nothing else.

    With `shared` weights, the stack is one row, which is everybody's.
    """

    algorithm: Algorithm
    agents: list[int]
    learners: list[Learner]
    stack: State
    shared: bool

    @classmethod
    def of(cls, members: Sequence[tuple[Agent, Learner]], shared: bool) -> Team:
        """Join the learners' states; from here on each one's state is its row of the stack."""
        learners = [learner for _, learner in members]
        stack = join(learner.state for learner in learners[: 1 if shared else None])
        for row, learner in enumerate(learners):
            learner.state = stack if shared else rows(stack, row, row + 1)
        agents = [agent.index for agent, _ in members]
        return cls(learners[0].algorithm, agents, learners, stack, shared)

    @property
    def num_rows(self) -> int:
        """How many different networks there are."""
        return 1 if self.shared else len(self.agents)

    def act(self, states: Sequence[npt.NDArray[Any]] | npt.NDArray[Any]) -> list[Ints]:
        """The actions of all members: one product, then each chooses by its own stream."""
        with torch.inference_mode():
            seen = np.stack([states[i] for i in self.agents])
            inputs = self.algorithm.inputs_of(seen)
            before = self.algorithm.tensor(np.stack([one.carried for one in self.learners]))
            stack = spread(self.stack, len(self.agents)) if self.shared else self.stack
            answers = self.algorithm.answer(stack, inputs, before)
        scores, carried = (answer.cpu().numpy() for answer in answers)
        return [
            learner.choose(*said)
            for learner, *said in zip(self.learners, scores, carried, strict=True)
        ]


@dataclass
class Group:
    """Members of a team that one worker trains."""

    team: Team
    first: int
    last: int
    worker: HereLearning
    under_way: bool = False

    @property
    def state(self) -> State:
        """Their rows of the stack."""
        return rows(self.team.stack, self.first, self.last)

    @property
    def agents(self) -> list[int]:
        """Their numbers in the world."""
        return self.team.agents if self.team.shared else self.team.agents[self.first : self.last]


class ParallelEnvironment(Environment):
    """An `Environment` whose agents act and learn together.

    >>> from keisei.worlds import make_environment
    >>> with make_environment("treasure_hunt", ["copies=8"]) as environment:
    ...     results = environment.run_experiment_parallel(epochs=2)
    >>> len(results)
    2

    Learning beside collecting (`async_learning`) goes in steps: at the end of an interval the
    weights of the training before are taken over, whole; minibatches are drawn for the next one;
    and it runs while the next interval is collected. So the result depends on the seed, never on
    which of them was faster.
    """

    def __init__(
        self,
        world: AnyWorld,
        agents: Sequence[Agent],
        config: WorldRunConfig,
        trace: Trace | None = None,
    ) -> None:
        super().__init__(world, agents, config, trace)
        self.parallel = config.parallel
        teams: dict[Algorithm, list[tuple[Agent, Learner]]] = {}
        for agent, learner in self.learners:
            teams.setdefault(learner.algorithm, []).append((agent, learner))
        self.teams = [Team.of(members, config.shared_weights) for members in teams.values()]
        # By team; formed at the first training, when there is data to measure with.
        self._groups: dict[int, list[Group]] = {}
        self._plans: dict[int, Plan] = {}  # by team; kept on resume

    @property
    def groups(self) -> list[Group]:
        """The agents that are trained together."""
        return [group for groups in self._groups.values() for group in groups]

    # -- acting --------------------------------------------------------------------------------

    def take_turn_parallel(self) -> None:
        """`take_turn`, with the networks of all agents answering together; they act in order."""
        self.turn += 1
        self.world.begin_turn()
        states = self._seen(self.world.pov())
        actions: list[Ints | None] = [None] * len(self.agents)
        for team in self.teams:
            for agent, chosen in zip(team.agents, team.act(states), strict=True):
                actions[agent] = chosen
        decided = [
            agent.get_action(state) if action is None else action
            for agent, state, action in zip(self.agents, states, actions, strict=True)
        ]
        self._step(states, decided)

    def next_turn(self) -> None:
        """A turn in the way that the settings ask for; in sequential order, nothing is batched."""
        if self.parallel.parallel_actions and self.config.turn_order != "sequential":
            self.take_turn_parallel()
        else:
            self.take_turn()

    # -- an experiment -------------------------------------------------------------------------

    def run_experiment_parallel(self, epochs: int | None = None) -> list[EpochResult]:
        """`run_experiment` with all that the settings allow to be done together."""
        return self.run_experiment(epochs)

    # -- learning ------------------------------------------------------------------------------

    def train(self) -> None:
        """Start the training that is due; without `async_learning`, wait for it as well."""
        self.finish()
        self._train_own()
        for number, team in enumerate(self.teams):
            drawn = whole([learner.draw_due() for learner in team.learners])
            if not drawn:
                continue
            batches = merged(drawn) if team.shared else _stacked(drawn)
            if number not in self._groups:
                self._groups[number] = self._form_groups(number, batches)
            for group in self._groups[number]:
                with self._failures_counted():
                    part = {name: one[group.first : group.last] for name, one in batches.items()}
                    group.worker.begin(group.state, part)
                    group.under_way = True
        if not self.parallel.async_learning:
            self.finish()

    def finish(self) -> None:
        """Wait for the training under way, and let its weights be those that act."""
        self._await_all()
        super().finish()

    def close(self) -> None:
        self._dissolve_groups()
        super().close()

    def _dissolve_groups(self) -> None:
        for group in self.groups:
            group.worker.close()
        self._groups = {}

    def _await_all(self) -> None:
        """Wait for each worker, and keep what it made until `finish` takes it over."""
        for group in self.groups:
            if group.under_way:
                group.under_way = False
                with self._failures_counted():
                    self._await(group)

    def _await(self, group: Group) -> None:
        with self.trace.span("wait for the learner", "collector"):
            outcome = group.worker.finish(self.parallel.learner_timeout)
        self.trace.add(group.worker.name, "train", outcome.start, outcome.end)
        for number, agent in enumerate(group.agents):
            row = 0 if group.team.shared else number
            state = rows(outcome.state, row, row + 1)
            self._ready[agent] = {"state": state, **outcome.trained.of(row)}

    @contextmanager
    def _failures_counted(self) -> Iterator[None]:
        """What fails or hangs is said and counted, and collection goes on."""
        try:
            yield
        except TrainingFailed as error:
            self.failed_trainings += 1
            log.warning("%s; its agents keep their weights and continue", error)

    def _form_groups(self, number: int, batches: Arrays) -> list[Group]:
        """Which members of a team are trained together, where, and in stacks of how many."""
        team = self.teams[number]
        if number not in self._plans:
            self._plans[number] = self._make_plan(team, batches)
        plan = self._plans[number]
        kind: type[HereLearning] = HereLearning
        workers = 1
        if self.parallel.async_learning or plan.in_processes:
            here = self.parallel.use_threads or team.algorithm.device.type != "cpu"
            kind = ThreadLearning if here else ProcessLearning
            everybody = len(self.learners)
            share = self.parallel.workers_for(everybody) * len(team.agents) / everybody
            workers = max(1, min(round(share), team.num_rows))
        groups = []
        for part in np.array_split(np.arange(team.num_rows), workers):
            first, last = int(part[0]), int(part[-1]) + 1
            whose = team.agents if team.shared else team.agents[first:last]
            name = f"learner of {_few([str(agent) for agent in whose])}"
            worker = kind(name, team.algorithm, plan.chunk)
            groups.append(Group(team, first, last, worker))
        return groups

    def _make_plan(self, team: Team, batches: Arrays) -> Plan:
        """In processes if asked for, or if no stack fits all; else what is fastest here."""
        if not self.parallel.parallel_training:
            return Plan(chunk=1, in_processes=False)
        on_cpu = team.algorithm.device.type == "cpu"  # a GPU is not to be shared by processes
        workers = self.parallel.workers_for(len(self.learners)) if on_cpu else 1
        plan = calibrate(team.algorithm, team.stack, batches, workers)
        several = len(self.teams) > 1 or self.parallel.num_workers is not None
        return Plan(plan.chunk, plan.in_processes or (several and workers > 1))

    # -- keeping -------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """As in `Environment`; a training under way is waited for, and kept but not taken over."""
        self._await_all()
        plans = {number: asdict(plan) for number, plan in self._plans.items()}
        return {**super().state_dict(), "plans": plans}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._dissolve_groups()  # what was under way is of another past
        super().load_state_dict(state)
        # If they were measured again, they might change the last bits of the weights.
        self._plans = {number: Plan(**plan) for number, plan in state["plans"].items()}


def _few(names: Sequence[str]) -> str:
    """At most three names, and how many more there are.

    >>> _few(["0", "1"]), _few(["0", "1", "2", "3", "4"])
    ('0, 1', '0, 1, 2 and 2 more')
    """
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _stacked(batches: Sequence[Arrays]) -> Arrays:
    return {name: np.stack([one[name] for one in batches]) for name in batches[0]}


def build(
    config: WorldRunConfig, trace: Trace | None = None, world: AnyWorld | None = None
) -> Environment:
    """The world (if none is given) and agents of these settings, in the way that they ask for."""
    world = world or open_world(config)
    kind = ParallelEnvironment if config.parallel.enabled else Environment
    return kind(world, make_agents(config, world), config, trace)
