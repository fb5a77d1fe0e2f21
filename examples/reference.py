"""All of Keisei's learning on one page: games, network, policy, rollout, GAE, PPO, loop.

Read it from top to bottom. It computes what `keisei train` does, without worker processes,
checkpoints, metrics or a live view: from the same seed and settings, both end with the same
weights, bit for bit (tests/training/test_reference.py).

    python examples/reference.py        # a small run: 8 updates, about 3 minutes
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from keisei.shogi import PLANE_SETS, VectorShogi
from keisei.shogi.actions import DROP_PIECE, FROM_SQUARE, PROMOTE, SQUARES, TO_SQUARE
from keisei.shogi.material import material

Array = np.ndarray
PLANES = PLANE_SETS["attack60"]


@dataclass(frozen=True)
class Settings:
    """A small run. Names and defaults are those of `keisei config`, which explains them."""

    seed: int = 1
    total_timesteps: int = 8 * 2 * 64 * 128
    # The games: `num_workers` shards, each a block of games that is played together.
    num_workers: int = 2
    num_envs_per_worker: int = 128
    rollout_length: int = 64
    move_limit: int = 512
    material_reward: float = 0.01
    # The network.
    depth: int = 2
    width: int = 64
    # PPO. Learning rate and entropy bonus fall in a line to the given share of themselves.
    gamma: float = 1.0
    lambda_gae: float = 0.98
    learning_rate: float = 1e-3
    learning_rate_end: float = 0.1
    ppo_epochs: int = 1
    minibatch_size: int = 128
    clip_epsilon: float = 0.2
    value_clip: float = 0.2
    value_loss_coef: float = 0.5
    entropy_coef: float = 0.01
    entropy_coef_end: float = 0.1
    max_grad_norm: float = 1.0
    target_kl: float = 0.03


# -- Games ----------------------------------------------------------------------------------
#
# `VectorShogi` plays many games at once and restarts each one as it ends. Everything is seen
# from the side of the player to move: the board is turned for White, so one network plays both
# sides and learns everything once. It gives
#
#   observations       uint8 [G, 100]; the network gets planes of it, attacked squares included
#   legal_actions()    all games' legal moves (of 13,527) end to end, and where each game's begin
#   step(actions)      the movers' rewards (+1 won, -1 lost, else 0), and which games ended


def new_shards(settings: Settings) -> list[VectorShogi]:
    """The games of a run. Each has a random stream of its own, numbered across the shards."""
    games, limit = settings.num_envs_per_worker, settings.move_limit
    return [
        VectorShogi(games, settings.seed, first_stream=shard * games, move_limit=limit)
        for shard in range(settings.num_workers)
    ]


# -- Network --------------------------------------------------------------------------------
#
# A residual tower with two heads. It has no batch statistics, so it computes the same function
# when it plays and when it learns: the first ratio that PPO sees after each rollout is 1.


class ResidualBlock(nn.Module):
    """Two convolutions beside the identity; the block starts as the identity."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        nn.init.zeros_(self.conv2.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x + self.conv2(F.relu(self.conv1(x))))


class PolicyHead(nn.Module):
    """Scores a move by the product of two vectors: where it starts, and where it goes.

    Each square has three vectors: as a start, as a start with promotion, and as a target. A drop
    starts from its piece, which has a learned vector, the same in all positions.
    """

    def __init__(self, width: int, dim: int = 32, pieces: int = 7) -> None:
        super().__init__()
        self.dim = dim
        self.embed = nn.Conv2d(width, 3 * dim, 1)
        self.pieces = nn.Parameter(torch.randn(pieces, dim) / dim)
        # For each action, the rows of its start and of its target among all vectors: first those
        # of the pieces, then three for each square of each position.
        from_square = pieces + 3 * FROM_SQUARE + PROMOTE
        self.start = torch.from_numpy(np.where(DROP_PIECE > 0, DROP_PIECE - 1, from_square))
        self.target = torch.from_numpy(pieces + 3 * TO_SQUARE + 2)
        self.is_drop = torch.from_numpy(DROP_PIECE > 0)

    def forward(self, x: Tensor) -> Tensor:
        """The vectors [B * 81 * 3, dim] of all squares."""
        return self.embed(x).permute(0, 2, 3, 1).reshape(-1, self.dim)

    def scores(self, vectors: Tensor, rows: Tensor, actions: Tensor) -> Tensor:
        """The scores of actions [N] in the positions `rows` [N]: only legal ones are computed."""
        table, first = torch.cat([self.pieces, vectors]), 3 * SQUARES * rows
        starts = self.start[actions] + first * ~self.is_drop[actions]
        start, target = F.embedding(torch.stack([starts, self.target[actions] + first]), table)
        return (start * target).sum(1) / math.sqrt(self.dim)


class ValueHead(nn.Module):
    """What the player to move may expect, from -1 (lost) to 1 (won). It starts at about 0."""

    def __init__(self, width: int, channels: int = 8, hidden: int = 64) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(width, channels, 1)
        self.hidden = nn.Linear(channels * SQUARES, hidden)
        self.value = nn.Linear(hidden, 1)
        nn.init.zeros_(self.value.weight)

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.relu(self.hidden(F.relu(self.reduce(x)).flatten(1)))
        return torch.tanh(self.value(hidden)).squeeze(1)


class Network(nn.Module):
    """Planes [B, 60, 9, 9] to the policy head's vectors and to values [B]."""

    def __init__(self, depth: int, width: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(PLANES.number, width, 3, padding=1)
        self.tower = nn.Sequential(*(ResidualBlock(width) for _ in range(depth)))
        self.policy = PolicyHead(width)
        self.value = ValueHead(width)
        self.to(memory_format=torch.channels_last)  # faster on a CPU

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        x = self.tower(F.relu(self.stem(inputs.contiguous(memory_format=torch.channels_last))))
        return self.policy(x), self.value(x)


# -- Policy ---------------------------------------------------------------------------------
#
# The softmax is taken over each game's legal actions alone, so illegal ones do not exist for
# the learner. A game's actions are the segment offsets[g]:offsets[g + 1] of one flat array.


@torch.inference_mode()
def evaluate(
    network: Network, observations: Array, legal: Array, offsets: Array
) -> tuple[Array, Array]:
    """Log-probabilities of all legal actions, end to end, and the values of the positions."""
    counts, starts = np.diff(offsets), offsets[:-1]
    rows = torch.from_numpy(np.repeat(np.arange(len(counts)), counts))
    vectors, values = network(torch.from_numpy(PLANES.make(observations)))
    scores = network.policy.scores(vectors, rows, torch.from_numpy(legal.astype(np.int64))).numpy()
    shifted = scores - np.repeat(np.maximum.reduceat(scores, starts), counts)
    total = np.add.reduceat(np.exp(shifted, dtype=np.float64), starts)
    return shifted - np.repeat(np.log(total), counts).astype(np.float32), values.numpy()


def sample(log_probs: Array, offsets: Array, uniforms: Array) -> Array:
    """An index into `log_probs` for each game, drawn with the game's random number in [0, 1)."""
    ends = np.cumsum(np.exp(log_probs, dtype=np.float64))
    bounds = np.concatenate([[0.0], ends])[offsets]  # where each game's probability begins
    targets = bounds[:-1] + uniforms * np.diff(bounds)
    picks = np.searchsorted(ends, targets, side="right")
    return np.clip(picks, offsets[:-1], offsets[1:] - 1)


# -- Rollout --------------------------------------------------------------------------------


@dataclass
class Moves:
    """N moves to learn from, each as its mover saw it."""

    legal: list[Array]  # the legal actions of each position
    observations: Array  # [N, 100]; all others are [N]
    actions: Array
    log_probs: Array  # of the actions, when they were drawn
    values: Array
    advantages: Array
    dones: Array  # did the move end its game?

    def take(self, rows: Array) -> "Moves":
        """Some of the moves, in the order of `rows`."""
        _, *columns = vars(self).values()
        return Moves([self.legal[row] for row in rows], *(column[rows] for column in columns))


def play(network: Network, games: VectorShogi, settings: Settings) -> Moves:
    """Play `rollout_length` moves in each game of a shard; the network plays both sides."""
    legal_of_each, steps = [], []
    for _ in range(settings.rollout_length):
        seen = games.observations.copy()
        legal, offsets = games.legal_actions()
        log_probs, values = evaluate(network, seen, legal, offsets)
        picks = sample(log_probs, offsets, games.streams.uniform())
        result = games.step(legal[picks])
        # Winning material is rewarded, too. After the move the board is seen by the opponent, so
        # the mover's material has the other sign. Where a game ended, a new one stands: no reward.
        gain = -material(games.observations) - material(seen)
        gain[result.dones] = 0
        rewards = result.rewards + gain * np.float32(settings.material_reward)
        legal_of_each += np.split(legal, offsets[1:-1])
        steps.append((seen, legal[picks], log_probs[picks], values, rewards, result.dones))
    _, last_values = evaluate(network, games.observations, *games.legal_actions())
    seen, actions, log_probs, values, rewards, dones = map(np.stack, zip(*steps, strict=True))
    advantages = zero_sum_gae(rewards, values, dones, last_values, settings)
    columns = [column.ravel() for column in (actions, log_probs, values, advantages, dones)]
    return Moves(legal_of_each, seen.reshape(dones.size, -1), *columns)


def join(rollouts: list[Moves]) -> Moves:
    """The moves of all rollouts, one rollout after the other."""
    legal, *columns = zip(*(vars(rollout).values() for rollout in rollouts), strict=True)
    return Moves([actions for part in legal for actions in part], *map(np.concatenate, columns))


# -- Generalised advantage estimation --------------------------------------------------------


def zero_sum_gae(
    rewards: Array, values: Array, dones: Array, last_values: Array, settings: Settings
) -> Array:
    """How much better than expected each move was: T moves of G games, as [T, G].

    The next position is the opponent's, and what is good there is bad here: the value that
    follows and the trace both change their sign. Nothing follows the end of a game. A game that
    the rollout cuts short is worth what the network thinks of its last position.
    """
    advantages = np.empty_like(rewards)
    next_values, trace = last_values, np.zeros_like(last_values)
    for t in reversed(range(len(rewards))):
        goes_on = settings.gamma * (1 - dones[t].astype(np.float32))
        error = rewards[t] - goes_on * next_values - values[t]
        trace = error - goes_on * settings.lambda_gae * trace
        advantages[t], next_values = trace, values[t]
    return advantages


# -- Proximal policy optimisation ------------------------------------------------------------


def log_softmax(network: Network, vectors: Tensor, batch: Moves) -> tuple[Tensor, Tensor]:
    """Log-probabilities of the moves played, and the mean entropy; `evaluate` with gradients."""
    count, flat = len(batch.legal), np.concatenate(batch.legal)
    rows_of = np.repeat(np.arange(count), [len(legal) for legal in batch.legal])
    rows, actions = torch.from_numpy(rows_of), torch.from_numpy(flat.astype(np.int64))
    scores = network.policy.scores(vectors, rows, actions)
    top = torch.full((count,), -torch.inf).scatter_reduce(0, rows, scores.detach(), "amax")
    shifted = scores - top[rows]
    total = torch.zeros(count).index_add(0, rows, shifted.exp())
    log_probs = shifted - total.log()[rows]
    played = log_probs[np.flatnonzero(flat == batch.actions[rows_of])]
    return played, -(log_probs.exp() * log_probs).sum() / count


def ppo_loss(
    network: Network, batch: Moves, entropy_coef: float, settings: Settings
) -> tuple[Tensor, dict[str, float]]:
    """PPO's loss on a minibatch, and what there is to say of it."""
    vectors, values = network(torch.from_numpy(PLANES.make(batch.observations)))
    log_probs, entropy = log_softmax(network, vectors, batch)
    old, advantages = torch.from_numpy(batch.values), torch.from_numpy(batch.advantages)
    returns = (advantages + old).clamp(-1, 1)  # material may take it where no value can follow
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    # The policy may gain by moving away from the one that played, but not beyond the clip range.
    log_ratio = log_probs - torch.from_numpy(batch.log_probs)
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - settings.clip_epsilon, 1 + settings.clip_epsilon)
    policy_loss = -torch.min(ratio * advantages, clipped * advantages).mean()
    # The same for the values.
    held = old + (values - old).clamp(-settings.value_clip, settings.value_clip)
    value_loss = torch.max((values - returns).square(), (held - returns).square()).mean()
    loss = policy_loss + settings.value_loss_coef * value_loss - entropy_coef * entropy
    kl = (ratio - 1 - log_ratio).mean()  # how far the policy has moved
    metrics = {"value_loss": value_loss, "entropy": entropy, "kl": kl}
    return loss, {name: value.item() for name, value in metrics.items()}


def learn(
    network: Network,
    optimizer: torch.optim.Optimizer,
    rng: np.random.Generator,
    moves: Moves,
    progress: float,
    settings: Settings,
) -> dict[str, float]:
    """One update: gradient steps on random minibatches, until the policy has moved enough."""
    rate = settings.learning_rate * (1 + (settings.learning_rate_end - 1) * progress)
    entropy_coef = settings.entropy_coef * (1 + (settings.entropy_coef_end - 1) * progress)
    optimizer.param_groups[0]["lr"] = rate
    for _ in range(settings.ppo_epochs):
        order = rng.permutation(len(moves.actions))
        for rows in np.array_split(order, math.ceil(len(order) / settings.minibatch_size)):
            loss, metrics = ppo_loss(network, moves.take(rows), entropy_coef, settings)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), settings.max_grad_norm)
            optimizer.step()
            if metrics["kl"] > settings.target_kl:
                return metrics
    return metrics


# -- Loop -----------------------------------------------------------------------------------


def train(settings: Settings) -> Iterator[tuple[Network, dict[str, float]]]:
    """Play, learn, repeat; gives the network and its metrics after every update."""
    torch.manual_seed(settings.seed)
    network = Network(settings.depth, settings.width)
    optimizer = torch.optim.Adam(network.parameters(), eps=1e-5, fused=True)
    rng = np.random.default_rng(settings.seed)
    shards = new_shards(settings)
    steps = 0
    while steps < settings.total_timesteps:
        moves = join([play(network, games, settings) for games in shards])
        progress = steps / settings.total_timesteps
        metrics = learn(network, optimizer, rng, moves, progress, settings)
        steps += len(moves.actions)
        yield network, {"steps": steps, "games": moves.dones.sum().item(), **metrics}


if __name__ == "__main__":
    torch.set_num_threads(1)  # as workers have: with more, sums differ in their last bits
    for update, (_, metrics) in enumerate(train(Settings()), 1):
        numbers = ", ".join(f"{name} {value:.6g}" for name, value in metrics.items())
        print(f"update {update}: {numbers}", flush=True)
