"""The networks of learners: plain, for pictures, or with a memory of the turns before.

Weights are rows of a stack (see `stack`): each tensor has a leading axis of agents, and nothing
mixes them. A network turns what was seen into features; its last layer makes values or a policy of
them.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch.nn.functional import conv2d

from keisei.errors import KeiseiError
from keisei.worlds.config import LearnerSettings
from keisei.worlds.stack import Inputs, State, dense
from keisei.worlds.view import View

LARGEST = 96  # pixels of a side; larger pictures are averaged down


class Network:
    """Plain layers, each of which sees all of the one before."""

    carried = 0  # numbers that are carried from a turn to the next one, in each copy

    def __init__(self, view: View, outputs: int, settings: LearnerSettings) -> None:
        self.layout: dict[str, tuple[int, int, float]] = {}  # rows, columns, bound at the start
        sizes = [self._first_layers(view, settings), *self._plain(settings)]
        # A ReLU, which the last layer does not have, halves the square of what it gets.
        for layer, (inputs, after) in enumerate(pairwise(sizes)):
            self._add(f"w{layer}", f"b{layer}", inputs, after, (6 / inputs) ** 0.5)
        self.depth = len(sizes) - 1
        self.width = self._memory_layer(sizes[-1], settings)
        bound = settings.last_layer_scale * (3 / self.width) ** 0.5
        self._add(f"w{self.depth}", f"b{self.depth}", self.width, outputs, bound)

    @property
    def takes_ones(self) -> bool:
        """Is it enough to know which of its inputs are 1?"""
        return self.depth > 0

    def _first_layers(self, view: View, settings: LearnerSettings) -> int:
        """What comes before the plain layers; returns how many numbers it gives."""
        return view.inputs

    def _plain(self, settings: LearnerSettings) -> list[int]:
        return settings.hidden

    def _memory_layer(self, inputs: int, settings: LearnerSettings) -> int:
        """What comes after the plain layers; returns how many numbers it gives."""
        return inputs

    def _add(self, weight: str, bias: str, inputs: int, outputs: int, bound: float) -> None:
        self.layout[weight] = (inputs, outputs, bound)
        self.layout[bias] = (1, outputs, 0.0)

    def features(
        self, weights: State, inputs: Inputs, carried: torch.Tensor, prefix: str = ""
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Features [agents, batch, width] of inputs [agents, batch, in], and what to carry on."""
        for layer in range(self.depth):
            inputs = torch.relu(dense(weights, f"{layer}", inputs, prefix))
        assert isinstance(inputs, torch.Tensor), "without layers, it must be given all inputs"
        return inputs, carried

    def unroll(
        self,
        weights: State,
        inputs: torch.Tensor,
        carried: torch.Tensor,
        first: torch.Tensor,
        looks: torch.Tensor,
        prefix: str = "",
    ) -> torch.Tensor:
        """Features [agents, batch, turns, width] of sequences [agents, batch, turns, in].

        They begin with what was `carried` then. Nothing is carried into a turn that is the `first`
        of an episode, nor out of one that only `looks` and does not act.
        """
        raise NotImplementedError

    def last(self, weights: State, features: torch.Tensor, prefix: str = "") -> torch.Tensor:
        """The last layer [agents, batch, outputs]."""
        return dense(weights, f"{self.depth}", features, prefix)


def new_weights(layout: dict[str, tuple[int, int, float]], generator: torch.Generator) -> State:
    """The weights of one new agent: uniform within their bounds."""
    weights = {}
    for name, (rows, columns, bound) in layout.items():
        weight = torch.zeros(1, rows, columns)
        if bound:
            weight = (torch.rand(weight.shape, generator=generator) * 2 - 1) * bound
        weights[name] = weight
    return weights


class PictureNetwork(Network):
    """Filters that slide over a picture (a window of cells, or pixels), then plain layers."""

    takes_ones = False

    def _first_layers(self, view: View, settings: LearnerSettings) -> int:
        if view.picture is None:
            raise KeiseiError(
                f"network: cnn is for pictures, but what an agent sees has the shape {view.shape}"
            )
        self._shape, self._planes_first = view.shape, view.planes_first
        *sides, planes = view.picture
        self._sides, self._shrink = sides, -(-max(sides) // LARGEST)
        sides = [side // self._shrink for side in sides]
        self._filters: list[tuple[int, int, int]] = []  # size, stride and padding of each layer
        for layer, filters in enumerate(settings.channels):
            size, stride, padding = _filter_for(min(sides))
            inputs = size * size * planes
            self._add(f"wf{layer}", f"bf{layer}", inputs, filters, (6 / inputs) ** 0.5)
            self._filters.append((size, stride, padding))
            sides = [(side + 2 * padding - size) // stride + 1 for side in sides]
            planes = filters
        return sides[0] * sides[1] * planes

    def features(
        self, weights: State, inputs: Inputs, carried: torch.Tensor, prefix: str = ""
    ) -> tuple[torch.Tensor, torch.Tensor]:
        assert isinstance(inputs, torch.Tensor)
        x = self._picture(inputs)
        for layer, form in enumerate(self._filters):
            filters, biases = weights[f"{prefix}wf{layer}"], weights[f"{prefix}bf{layer}"]
            # One agent after another: the same numbers in a stack and alone, and no slower.
            each = zip(x, filters, biases, strict=True)
            x = torch.stack([_filtered(*one, form) for one in each])
        return super().features(weights, x.flatten(2), carried, prefix)

    def _picture(self, inputs: torch.Tensor) -> torch.Tensor:
        """Inputs as [agents, batch, high, wide, planes], averaged down if they are large."""
        lead, (high, wide), shrink = inputs.shape[:2], self._sides, self._shrink
        if self._planes_first:
            x = inputs.view(*lead, -1, high, wide).permute(0, 1, 3, 4, 2)
        else:
            x = inputs.view(*lead, high, wide, -1)
        if shrink == 1:
            return x
        x = x[:, :, : high // shrink * shrink, : wide // shrink * shrink]
        parts = (high // shrink, shrink, wide // shrink, shrink)
        return x.reshape(*lead, *parts, x.shape[-1]).mean(dim=(3, 5))


def _filter_for(side: int) -> tuple[int, int, int]:
    """Size, stride and padding of filters on a picture: large ones are made smaller quickly."""
    if side > 40:
        return 8, 4, 0
    return (4, 2, 0) if side > 16 else (3, 1, 1)


def _filtered(
    x: torch.Tensor, filters: torch.Tensor, biases: torch.Tensor, form: tuple[int, int, int]
) -> torch.Tensor:
    """What one agent's filters make of its pictures [batch, high, wide, planes].

    `filters` are [size * size * planes, filters], as if they were a plain layer at each place.
    """
    size, stride, padding = form
    kernel = filters.view(size, size, x.shape[-1], -1).permute(3, 2, 0, 1)
    made = conv2d(x.permute(0, 3, 1, 2), kernel, biases[0], stride, padding)
    return torch.relu(made).permute(0, 2, 3, 1)


class MemoryNetwork(Network):
    """The last hidden layer is a GRU, which carries on what it knows from turn to turn."""

    def _plain(self, settings: LearnerSettings) -> list[int]:
        return settings.hidden[:-1]

    def _memory_layer(self, inputs: int, settings: LearnerSettings) -> int:
        self.carried = size = settings.hidden[-1]
        for source, count in (("x", inputs), ("h", size)):  # what is seen, and what was known
            self._add(f"w{source}", f"b{source}", count, 3 * size, size**-0.5)
        return size

    def features(
        self, weights: State, inputs: Inputs, carried: torch.Tensor, prefix: str = ""
    ) -> tuple[torch.Tensor, torch.Tensor]:
        new = self._cell(weights, self._seen(weights, inputs, prefix), carried, prefix)
        return new, new

    def unroll(
        self,
        weights: State,
        inputs: torch.Tensor,
        carried: torch.Tensor,
        first: torch.Tensor,
        looks: torch.Tensor,
        prefix: str = "",
    ) -> torch.Tensor:
        agents, batch, turns = inputs.shape[:3]
        seen = self._seen(weights, inputs.flatten(1, 2), prefix).view(agents, batch, turns, -1)
        features = []
        for turn in range(turns):
            known = carried * ~first[:, :, turn, None]
            new = self._cell(weights, seen[:, :, turn], known, prefix)
            features.append(new)
            carried = torch.where(looks[:, :, turn, None], known, new)
        return torch.stack(features, dim=2)

    def _seen(self, weights: State, inputs: Inputs, prefix: str) -> torch.Tensor:
        plain, _ = super().features(weights, inputs, torch.empty(0), prefix)
        return dense(weights, "x", plain, prefix)

    def _cell(
        self, weights: State, seen: torch.Tensor, known: torch.Tensor, prefix: str
    ) -> torch.Tensor:
        reset_x, update_x, new_x = seen.chunk(3, dim=-1)
        reset_h, update_h, new_h = dense(weights, "h", known, prefix).chunk(3, dim=-1)
        update = torch.sigmoid(update_x + update_h)
        new = torch.tanh(new_x + torch.sigmoid(reset_x + reset_h) * new_h)
        return new + update * (known - new)


NETWORKS = {"mlp": Network, "cnn": PictureNetwork, "gru": MemoryNetwork}
