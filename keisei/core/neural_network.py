"""The network: a residual tower with a policy and a value head.

It has no batch statistics, so it computes the same function when it plays and when it learns: the
probabilities that are recorded are the ones that PPO compares with.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

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


class Preset(NamedTuple):
    """The size of a tower; `se_ratio` 0 means no squeeze-excitation."""

    depth: int
    width: int
    se_ratio: float


PRESETS = {
    "tiny": Preset(depth=2, width=64, se_ratio=0.0),
    "small": Preset(depth=6, width=128, se_ratio=0.0),
    "full": Preset(depth=9, width=256, se_ratio=0.25),
}


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
        return F.relu(x + self.se(self.conv2(F.relu(self.conv1(x)))))


class FromToHead(nn.Module):
    """Scores a move by where it starts and where it goes.

    Each square gives a vector as a start (one for moving, one for promoting) and one as a target;
    a move's score is their product. A drop starts from its piece, which has a learned vector.
    Only the scores of the legal moves are ever computed: about 60 of 13,527.
    """

    starts = 2 * SQUARES + len(HAND_PIECES)
    ends: Tensor  # [2, 13527]: start and target of each action, among the vectors

    def __init__(self, width: int, dim: int = 32) -> None:
        super().__init__()
        self.dim = dim
        self.embed = nn.Conv2d(width, 3 * dim, 1)
        self.pieces = nn.Parameter(torch.randn(len(HAND_PIECES), dim) / dim)
        from_square = PROMOTE * SQUARES + FROM_SQUARE
        start = np.where(DROP_PIECE > 0, 2 * SQUARES + DROP_PIECE - 1, from_square)
        ends = torch.from_numpy(np.stack([start, self.starts + TO_SQUARE]))
        self.register_buffer("ends", ends, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """The vectors [B, 162 + 7 + 81, dim] of all starts and targets."""
        embedded = self.embed(x).flatten(2).transpose(1, 2)  # [B, 81, 3 * dim]
        move, promote, target = embedded.split(self.dim, 2)
        pieces = self.pieces.expand(x.shape[0], -1, -1)
        return torch.cat([move, promote, pieces, target / math.sqrt(self.dim)], 1)

    def scores(self, vectors: Tensor, rows: Tensor, actions: Tensor) -> Tensor:
        """The scores of actions [N] in the positions `rows` [N]."""
        places = self.ends.index_select(1, actions) + rows * vectors.shape[1]
        # An embedding look-up, because its gradient is the fastest of all ways to index.
        start, target = F.embedding(places, vectors.flatten(0, 1)).float()
        return (start * target).sum(1)


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
            value = (hidden.float() * self.value.weight.float()).sum(1) + self.value.bias.float()
            return torch.tanh(value)
        return torch.tanh(self.value(hidden)).squeeze(1)


class ActorCriticResTower(nn.Module):
    """Planes [B, 46 or 60, 9, 9] to what the policy head needs, and to values [B] of the mover.

    `planes` makes its input, and `scores` turns what the policy head needs into scores of given
    actions, such as all legal ones.

    >>> network = ActorCriticResTower(*PRESETS["tiny"])
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
        """The network's input, on its device, from compact observations [B, 100]."""
        weight = self.stem.weight
        return torch.from_numpy(self.plane_set.make(observations)).to(weight.device, weight.dtype)

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        x = F.relu(self.stem(planes.contiguous(memory_format=torch.channels_last)))
        x = self.tower(x)
        return self.policy(x), self.value(x)

    def scores(self, policy: Tensor, rows: Tensor, actions: Tensor) -> Tensor:
        """The policy's scores of actions [N] in the positions `rows` [N] of the batch."""
        if policy.requires_grad:  # gradients are summed in float32
            policy = policy.float()
        return self.policy.scores(policy, rows, actions)


def build_network(config: ModelConfig) -> ActorCriticResTower:
    """A fresh network of the configured size."""
    preset = PRESETS[config.preset]
    return ActorCriticResTower(
        preset.depth if config.depth is None else config.depth,
        preset.width if config.width is None else config.width,
        preset.se_ratio if config.se_ratio is None else config.se_ratio,
        config.policy_head,
        config.planes,
    )
