"""The network: a residual tower with a policy and a value head.

It has no batch statistics, so it computes the same function when it plays and when it learns: the
probabilities that are recorded are the ones that PPO compares with.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from keisei.config_schema import ModelConfig
from keisei.shogi import PLANE_SETS, features
from keisei.shogi.actions import (
    DROP_PIECE,
    FROM_SQUARE,
    HAND_PIECES,
    NUM_ACTIONS,
    PROMOTE,
    SQUARES,
    TO_SQUARE,
)

PolicyHead = Literal["from_to", "flat"]


class SqueezeExcitation(nn.Module):
    """Scales every channel by a factor that depends on the whole board."""

    def __init__(self, width: int, ratio: float) -> None:
        super().__init__()
        hidden = max(1, int(width * ratio))
        self.squeeze = nn.Linear(width, hidden)
        self.excite = nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        scale = self.excite(F.relu(self.squeeze(x.mean((2, 3)))))
        return x * torch.sigmoid(scale)[:, :, None, None]


class ResidualBlock(nn.Module):
    """Two convolutions beside the identity.

    The second starts at zero, so a fresh tower of any depth passes its input on unchanged; this
    replaces normalisation.
    """

    def __init__(self, width: int, se_ratio: float) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        nn.init.zeros_(self.conv2.weight)
        self.se = SqueezeExcitation(width, se_ratio) if se_ratio else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        change = self.se(self.conv2(self.conv1(x).relu_()))
        return change.add_(x).relu_()  # in place, like all of these: a learner waits for memory


class FromToHead(nn.Module):
    """Scores a move by where it starts and where it goes.

    Each square gives three vectors: as a start, as a start of a move that promotes, and as a
    target; a move's score is the product of two. A drop starts from its piece, which has a learned
    vector. Only the scores of the legal moves are ever computed: about 60 of 13,527.
    """

    # [13527]: where each action's start and target stand among all vectors, first those of the
    # pieces, then three for each square of each position; and whether its start is a square. All
    # in one number, because looking up costs more than taking apart.
    ends: Tensor

    def __init__(self, width: int, dim: int = 32) -> None:
        super().__init__()
        self.dim = dim
        self.embed = nn.Conv2d(width, 3 * dim, 1)
        self.pieces = nn.Parameter(torch.randn(len(HAND_PIECES), dim) / dim)
        is_drop, first = DROP_PIECE > 0, len(HAND_PIECES)
        start = np.where(is_drop, DROP_PIECE - 1, first + 3 * FROM_SQUARE + PROMOTE)
        ends = start | (first + 3 * TO_SQUARE + 2) << 8 | ~is_drop << 16
        self.register_buffer("ends", torch.from_numpy(ends.astype(np.int32)), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """The vectors [B * 81 * 3, dim] of all squares; they stand in memory as they are made."""
        return self.embed(x).permute(0, 2, 3, 1).reshape(-1, self.dim)

    def scores(self, vectors: Tensor, rows: Tensor, actions: Tensor) -> Tensor:
        """The scores of actions [N] in the positions `rows` [N]."""
        # Pieces are rounded as they are when they play. While learning they are float32, and so is
        # the table: gradients are summed in that.
        table = torch.cat([self.pieces.to(vectors.dtype), vectors]).to(self.pieces.dtype)
        # The gradient of `index_select` is the fastest of all ways to index.
        ends = table.index_select(0, self.places(rows, actions).flatten()).float()
        start, target = ends.view(2, -1, self.dim)
        return (start * target).sum(1) / math.sqrt(self.dim)

    def places(self, rows: Tensor, actions: Tensor) -> Tensor:
        """Where the starts and targets of actions [N] stand among all vectors: [2, N]."""
        ends, first = self.ends.index_select(0, actions), 3 * SQUARES * rows.int()
        return torch.stack([(ends & 255) + first * (ends >> 16), (ends >> 8 & 255) + first])


class FlatHead(nn.Module):
    """One linear layer from the board to all actions: the simple way, for comparison."""

    def __init__(self, width: int, channels: int = 16) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(width, channels, 1)
        self.all_scores = nn.Linear(channels * SQUARES, NUM_ACTIONS)

    def forward(self, x: Tensor) -> Tensor:
        """The scores [B, 13527] of all actions."""
        scores: Tensor = self.all_scores(F.relu(self.reduce(x)).flatten(1))
        return scores

    def scores(self, all_scores: Tensor, rows: Tensor, actions: Tensor) -> Tensor:
        """The scores of actions [N] in the positions `rows` [N]."""
        return all_scores.flatten()[rows * NUM_ACTIONS + actions]


class ValueHead(nn.Module):
    """The result that the mover can expect, from -1 (lost) to 1 (won)."""

    def __init__(self, width: int, channels: int = 8, hidden: int = 64) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(width, channels, 1)
        self.hidden = nn.Linear(channels * SQUARES, hidden)
        self.value = nn.Linear(hidden, 1)
        nn.init.zeros_(self.value.weight)

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.relu(self.hidden(F.relu(self.reduce(x)).flatten(1)))
        if hidden.dtype == torch.bfloat16:  # it knows 256 values between 0.5 and 1: too few
            # Multiplied in float32, but with weights that are rounded as they are when they play.
            weight, bias = (part.to(hidden.dtype).float() for part in self.value.parameters())
            value = (hidden.float() * weight).sum(1) + bias
            return torch.tanh(value)
        return torch.tanh(self.value(hidden)).squeeze(1)


class ActorCriticResTower(nn.Module):
    """Planes [B, 46 or 60, 9, 9] to what the policy head needs, and to values [B] of the mover.

    `planes` makes its input, and `scores` turns what the policy head needs into scores of given
    actions, such as all legal ones.

    >>> network = ActorCriticResTower(depth=2, width=64)
    >>> policy, values = network(network.planes(np.zeros((2, 100), np.uint8)))
    >>> rows, actions = torch.tensor([0, 0, 1]), torch.tensor([5, 13526, 5])
    >>> network.scores(policy, rows, actions).shape, values.shape
    (torch.Size([3]), torch.Size([2]))
    """

    def __init__(
        self,
        depth: int,
        width: int,
        se_ratio: float = 0.0,
        policy_head: PolicyHead = "from_to",
        planes: str = "attack60",
    ) -> None:
        super().__init__()
        self.plane_set = PLANE_SETS[planes]
        self.stem = nn.Conv2d(self.plane_set.number, width, 3, padding=1)
        self.tower = nn.Sequential(*(ResidualBlock(width, se_ratio) for _ in range(depth)))
        self.policy = FromToHead(width) if policy_head == "from_to" else FlatHead(width)
        self.value = ValueHead(width)
        # Channels last in memory: a quarter faster on a CPU.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def planes(self, observations: features.Observations) -> Tensor:
        """The network's input from compact observations [B, 100]: on its device, as it computes."""
        weight, device = self.stem.weight, self.stem.weight.device
        autocast = torch.is_autocast_enabled(device.type)
        kind = torch.get_autocast_dtype(device.type) if autocast else weight.dtype
        if kind == torch.bfloat16:  # made as such, in half the time
            bits = torch.from_numpy(self.plane_set.make(observations, np.uint16))
            return bits.view(torch.bfloat16).to(device)
        return torch.from_numpy(self.plane_set.make(observations)).to(device, kind)

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        x = self.stem(planes.contiguous(memory_format=torch.channels_last)).relu_()
        x = self.tower(x)
        return self.policy(x), self.value(x)

    def scores(self, policy: Tensor, rows: Tensor, actions: Tensor) -> Tensor:
        """The policy's scores of actions [N] in the positions `rows` [N] of the batch."""
        scores: Tensor = self.policy.scores(policy, rows, actions)
        return scores.float()


def build_network(config: ModelConfig) -> ActorCriticResTower:
    """A fresh network of the configured size."""
    return ActorCriticResTower(*config.size, config.policy_head, config.planes)


def depth_of(weights: Iterable[str]) -> int:
    """How many blocks a network has, by the names of its weights.

    >>> depth_of(["stem.bias", "tower.0.conv1.bias", "tower.1.conv1.bias"])
    2
    """
    return len({name.split(".")[1] for name in weights if name.startswith("tower.")})


def load_grown(network: ActorCriticResTower, weights: Mapping[str, Tensor]) -> None:
    """Take the weights of a network that may have fewer blocks: it plays the same moves.

    The other blocks pass their input on until they have learned to do better.
    """
    added: dict[str, Tensor] = {}
    for number in range(depth_of(weights), len(network.tower)):
        block = network.tower[number]
        assert isinstance(block, ResidualBlock)
        for part in block.conv2.parameters():
            nn.init.zeros_(part)
        added |= {f"tower.{number}.{name}": part for name, part in block.state_dict().items()}
    network.load_state_dict({**weights, **added})
