"""A way to learn, without anything that belongs to one agent.

What an agent owns (weights, memory, random streams) is handed in. So equal agents have equal
algorithms, and what learns N of them at once is the same code that learns one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from keisei.random_streams import RandomStreams
from keisei.worlds.config import LearnerSettings
from keisei.worlds.memory import Arrays, Buffer
from keisei.worlds.networks import NETWORKS, new_weights
from keisei.worlds.novelty import Novelty
from keisei.worlds.stack import Adam, Inputs, State, leaves_of
from keisei.worlds.view import View

Ints = npt.NDArray[np.int64]

IMPOSSIBLE = -1e9  # what an action is worth that cannot be chosen


def pick(possible: npt.NDArray[np.bool_], share: npt.NDArray[np.float64]) -> Ints:
    """Of the possible actions [copies, actions], the one at this share [copies] of them.

    >>> pick(np.array([[False, True, True]] * 2), np.array([0.4, 0.6])).tolist()
    [1, 2]
    """
    rank = (share * possible.sum(axis=1)).astype(np.int64)
    return (possible.cumsum(axis=1) > rank[:, None]).argmax(axis=1)


@dataclass(frozen=True)
class Trained:
    """What a training came to, for each of its agents."""

    losses: npt.NDArray[np.float32]  # mean over the steps that were finite
    failed: Ints  # steps whose loss or gradient was not finite
    measures: dict[str, npt.NDArray[np.float32]] = field(default_factory=dict)  # each [agents]

    def of(self, row: int) -> dict[str, Any]:
        """What it came to for one of the agents."""
        measures = {name: float(values[row]) for name, values in self.measures.items()}
        loss, failed = float(self.losses[row]), int(self.failed[row])
        return {"loss": loss, "failed": failed, "measures": measures}


class Algorithm:
    """The base of `DoubleDQN` and `PPO`."""

    device = torch.device("cpu")  # where its networks are

    def __init__(self, view: View, num_actions: int, settings: LearnerSettings) -> None:
        self.view, self.num_actions, self.settings = view, num_actions, settings
        self.adam = Adam(settings.learning_rate, settings.max_grad_norm, settings.adam_eps)
        self.network = NETWORKS[settings.network](view, self.outputs, settings)
        self.layout = dict(self.network.layout)

    @property
    def weights(self) -> list[str]:
        """The names of all that is learned."""
        return list(self.layout)

    @property
    def extras(self) -> dict[str, tuple[int, ...]]:
        """What is remembered of a step beside the usual, and its shape."""
        size = self.network.carried
        return {"carried": (size,), "first": ()} if size else {}

    @property
    def outputs(self) -> int:
        """Numbers that the network gives."""
        return self.num_actions

    def new_state(self, generator: torch.Generator) -> State:
        """The state of one new agent."""
        weights = new_weights(self.layout, generator)
        state = {**weights, **self.adam.new_state(weights)}
        return {name: tensor.to(self.device) for name, tensor in state.items()}

    def tensor(self, array: npt.NDArray[Any]) -> torch.Tensor:
        """The same numbers, where the networks are."""
        return torch.from_numpy(array).to(self.device)

    @property
    def least_turns(self) -> int:
        """How many turns must be remembered before there is anything to learn."""
        return 2

    def memory_turns(self, copies: int, turns_per_training: int) -> int:
        """How many turns an agent must remember."""
        raise NotImplementedError

    def inputs_of(self, observations: npt.NDArray[Any]) -> Inputs:
        """What the networks are asked about, of observations [agents, batch, ...]."""
        few = self.network.takes_ones and self.device.type == "cpu"  # a GPU would rather multiply
        ones = self.view.ones(observations) if few else None
        return ones or self.tensor(self.view.encode(observations))

    def answer(
        self, state: State, inputs: Inputs, carried: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What the networks say [agents, batch, outputs], and what they carry on."""
        features, carried = self.network.features(state, inputs, carried)
        return self.only_possible(self.say(state, features), inputs), carried

    def only_possible(self, outputs: torch.Tensor, inputs: Inputs) -> torch.Tensor:
        """The outputs [..., outputs], with `IMPOSSIBLE` for actions that the inputs rule out."""
        if not self.view.mask:
            return outputs
        assert isinstance(inputs, torch.Tensor), "windows of cells have no mask"
        possible = inputs[..., -self.view.mask :] > 0
        possible |= ~possible.any(dim=-1, keepdim=True)  # of an agent that is not there
        actions, others = outputs[..., : self.num_actions], outputs[..., self.num_actions :]
        return torch.cat([actions.masked_fill(~possible, IMPOSSIBLE), others], dim=-1)

    def say(self, weights: State, features: torch.Tensor) -> torch.Tensor:
        """What the networks say [agents, batch, outputs] of features [agents, batch, width]."""
        return self.network.last(weights, features)

    def features(
        self, weights: State, inputs: torch.Tensor, batch: Arrays, prefix: str = ""
    ) -> torch.Tensor:
        """Features [agents, batch, width] to learn from, or of a gru [agents, batch, turns, width].

        `inputs` are the encoded states of the batch.
        """
        if not self.network.carried:
            return self.network.features(weights, inputs, inputs, prefix)[0]
        carried, first = self.tensor(batch["carried"]), self.tensor(batch["first"] > 0)
        looks = self.tensor(batch["action"] < 0)
        return self.network.unroll(weights, inputs, carried, first, looks, prefix)

    def choose(
        self, scores: npt.NDArray[np.float32], streams: RandomStreams, epoch: int
    ) -> tuple[Ints, dict[str, Any]]:
        """Actions [copies] and what to remember with them."""
        raise NotImplementedError

    def extras_of(self, scores: npt.NDArray[np.float32]) -> dict[str, Any]:
        """What to remember of a look that no action followed: that beyond a cut by time."""
        return dict.fromkeys(self.extras, 0)

    def draw(
        self,
        memory: Buffer,
        steps: int,
        turns: int,
        rng: np.random.Generator,
        novelty: Novelty | None = None,
    ) -> Arrays:
        """Minibatches [steps, batch, ...]; `turns` are new since the last time.

        With `novelty`, seeing what is new to the agent is worth something as well.
        """
        raise NotImplementedError

    def loss(self, leaves: State, state: State, batch: Arrays) -> torch.Tensor:
        """The loss of each agent [agents] on its part of the batch [agents, batch, ...]."""
        raise NotImplementedError

    def measure(self, state: State, batch: Arrays) -> dict[str, torch.Tensor]:
        """What is worth knowing after a training, of each agent [agents], from its last batch."""
        return {}

    def epoch_measures(self, epoch: int) -> dict[str, float]:
        """What is known of an epoch's way to act before it begins."""
        return {}

    def after_step(self, state: State) -> None:
        """What follows a training step."""

    def learn(self, state: State, batches: Arrays) -> Trained:
        """Train all agents of the state, in place, on their batches [agents, steps, batch, ...]."""
        agents, steps = batches["action"].shape[:2]
        total = torch.zeros(agents, device=self.device)
        failed = torch.zeros(agents, dtype=torch.int64, device=self.device)
        for step in range(steps):
            leaves = leaves_of(state, self.weights)
            batch = {name: array[:, step] for name, array in batches.items()}
            loss = self.loss(leaves, state, batch)
            finite = self.adam.step(state, loss, leaves)
            self.after_step(state)
            total += loss.detach().masked_fill(~finite, 0)
            failed += ~finite
        losses = torch.where(failed < steps, total / (steps - failed).clamp(min=1), torch.nan)
        with torch.no_grad():
            measured = self.measure(state, batch)
        measures = {name: one.cpu().numpy() for name, one in measured.items()}
        return Trained(losses.cpu().numpy(), failed.cpu().numpy(), measures)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Algorithm)
            and type(self) is type(other)
            and (self.view, self.num_actions) == (other.view, other.num_actions)
            and self.settings == other.settings
        )

    def __hash__(self) -> int:
        return hash((type(self), self.view, self.num_actions))
