"""The networks of many agents as rows of a stack: one product answers for all of them.

A `State` is all that learning changes in an agent: its weights and its optimiser's memory. Every
tensor has a leading axis of agents. An agent by itself has a state of one row; a stack has a row
for each; and the rows of a stack are views, so that agent i's state is row i, wherever it is used.
Nothing here mixes rows: what happens in one depends on that one alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch.nn.functional import embedding_bag

from keisei.worlds.view import Ones

State = dict[str, torch.Tensor]
Inputs = torch.Tensor | Ones  # of networks: all numbers, or which of them are 1


def dense(weights: State, layer: str, inputs: Inputs, prefix: str = "") -> torch.Tensor:
    """Outputs [agents, batch, out] of inputs [agents, batch, in], each agent by its own row.

    >>> weights = {"w0": torch.ones(1, 4, 2), "b0": torch.zeros(1, 1, 2)}
    >>> dense(weights, "0", torch.ones(1, 5, 4)).shape
    torch.Size([1, 5, 2])
    """
    weight, bias = weights[f"{prefix}w{layer}"], weights[f"{prefix}b{layer}"]
    if isinstance(inputs, Ones):
        return _sums(weight, inputs).add_(bias)
    return torch.baddbmm(bias, inputs, weight)


def _sums(weight: torch.Tensor, ones: Ones) -> torch.Tensor:
    """What the ones come to: the sum of their rows, which is less work than a product."""
    places, bounds = torch.from_numpy(ones.places), torch.from_numpy(ones.bounds)
    batch = (len(bounds) - 1) // ones.agents
    sums = []
    for agent, table in enumerate(weight):
        own = bounds[agent * batch : (agent + 1) * batch + 1]
        first, last = int(own[0]), int(own[-1])
        sums.append(
            embedding_bag(
                places[first:last], table, own - first, mode="sum", include_last_offset=True
            )
        )
    return torch.stack(sums)


def join(states: Iterable[State]) -> State:
    """One stack of several states, in new memory."""
    states = list(states)
    return {name: torch.cat([state[name] for state in states]) for name in states[0]}


def rows(state: State, first: int, last: int) -> State:
    """Views of the rows `first` to `last - 1`."""
    return {name: tensor[first:last] for name, tensor in state.items()}


def spread(state: State, agents: int) -> State:
    """Views of the one row of a stack, once for each agent."""
    return {name: tensor.expand(agents, *tensor.shape[1:]) for name, tensor in state.items()}


def clone(state: State) -> State:
    """The same numbers in new memory."""
    return {name: tensor.clone() for name, tensor in state.items()}


def kept(state: State) -> State:
    """The same numbers in new memory, on the CPU: what goes into a file."""
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in state.items()}


def assign(target: State, source: State) -> None:
    """Write all numbers of `source` into the memory of `target`."""
    for name, tensor in target.items():
        tensor.copy_(source[name])


@dataclass(frozen=True)
class Adam:
    """Adam for stacks: each row has its own moments, its own count of steps, its own clipping."""

    learning_rate: float
    max_grad_norm: float
    eps: float = 1e-8
    betas: tuple[float, float] = (0.9, 0.999)

    def new_state(self, weights: State) -> State:
        """The moments, all zero."""
        moments = {
            f"{kind}.{name}": torch.zeros_like(weight)
            for kind in ("mean", "square")
            for name, weight in weights.items()
        }
        agents = len(next(iter(weights.values())))
        return {**moments, "steps": torch.zeros(agents, dtype=torch.int64)}

    def step(self, state: State, loss: torch.Tensor, leaves: State) -> torch.Tensor:
        """One step down the loss [agents] with respect to the leaves; returns whose were finite.

        Rows whose loss or gradient is not finite stay as they are.
        """
        grads = torch.autograd.grad(loss.sum(), list(leaves.values()))
        norms = torch.stack([grad.flatten(1).norm(dim=1) for grad in grads]).norm(dim=0)
        finite = torch.isfinite(norms) & torch.isfinite(loss.detach())
        if finite.all():
            self._update(state, dict(zip(leaves, grads, strict=True)), norms)
        else:
            good = finite.nonzero().flatten()
            part = {name: tensor[good] for name, tensor in state.items()}  # copies
            named = zip(leaves, grads, strict=True)
            self._update(part, {name: grad[good] for name, grad in named}, norms[good])
            for name, tensor in state.items():
                tensor[good] = part[name]
        return finite

    def _update(self, state: State, grads: State, norms: torch.Tensor) -> None:
        first, second = self.betas
        state["steps"] += 1
        steps = state["steps"].double()
        size = (-self.learning_rate / (1 - first**steps)).float()
        correction = (1 - second**steps).sqrt().float()
        scale = (self.max_grad_norm / (norms + 1e-6)).clamp(max=1.0)
        for name, grad in grads.items():
            each = (-1,) + (1,) * (grad.ndim - 1)
            grad.mul_(scale.view(each))
            mean, square = state[f"mean.{name}"], state[f"square.{name}"]
            mean.lerp_(grad, 1 - first)
            square.mul_(second).addcmul_(grad, grad, value=1 - second)
            below = (square.sqrt() / correction.view(each)).add_(self.eps)
            state[name].add_((mean / below).mul_(size.view(each)))


def leaves_of(state: State, names: Iterable[str]) -> State:
    """The same memory as leaves of a new graph, to take gradients with respect to."""
    return {name: state[name].detach().requires_grad_() for name in names}
