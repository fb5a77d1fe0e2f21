"""PPO: the policy moves a little towards what turned out better than expected."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from keisei.random_streams import RandomStreams
from keisei.worlds.algorithm import IMPOSSIBLE, Algorithm, Ints
from keisei.worlds.config import PPOSettings
from keisei.worlds.memory import NO_ACTION, Arrays, Buffer
from keisei.worlds.novelty import Novelty
from keisei.worlds.stack import State

Floats = npt.NDArray[np.float32]


def gae(data: Arrays, gamma: float, lam: float) -> Floats:
    """Advantages [turns, copies] of a memory's newest turns, with their values.

    After a done, nothing counts; after a cut, what the value of the row beyond it says.

    >>> steps = {"reward": [[1.0], [1.0]], "value": [[0.0], [0.0]], "action": [[0], [0]]}
    >>> data = {name: np.array(array) for name, array in steps.items()}
    >>> gae(data | {"done": np.array([[False], [True]])}, gamma=1.0, lam=1.0).tolist()
    [[2.0], [1.0]]
    """
    rewards, values, dones = data["reward"], data["value"], data["done"]
    are_steps = data["action"] != NO_ACTION
    advantages = np.zeros_like(rewards)
    trace = following = np.zeros_like(rewards[0])
    for turn in range(len(rewards) - 1, -1, -1):
        goes_on = np.where(dones[turn], np.float32(0), np.float32(gamma))
        delta = rewards[turn] + goes_on * following - values[turn]
        trace = (delta + goes_on * np.float32(lam) * trace) * are_steps[turn]
        advantages[turn] = trace
        following = values[turn]
    return advantages


class PPO(Algorithm):
    """Learns from the turns since the last training, and from no older ones."""

    settings: PPOSettings

    @property
    def extras(self) -> dict[str, tuple[int, ...]]:
        return super().extras | {"log_prob": (), "value": ()}

    @property
    def outputs(self) -> int:
        return self.num_actions + 1  # the last one is the value

    def memory_turns(self, copies: int, turns_per_training: int) -> int:
        return max(2 * turns_per_training, 2)  # each turn may be followed by a cut in some copy

    def choose(
        self, scores: Floats, streams: RandomStreams, epoch: int
    ) -> tuple[Ints, dict[str, Any]]:
        logits, values = scores[:, :-1], scores[:, -1]
        shifted = logits - logits.max(axis=1, keepdims=True)
        log_probs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        below = np.exp(log_probs).cumsum(axis=1) <= streams.uniform()[:, None]
        last = self.num_actions - 1  # where rounding may lead beyond
        if self.view.mask:
            last = last - (logits[:, ::-1] != IMPOSSIBLE).argmax(axis=1)
        actions = np.minimum(below.sum(axis=1), last)
        chosen = np.take_along_axis(log_probs, actions[:, None], axis=1)[:, 0]
        return actions, {"log_prob": chosen, "value": values}

    def extras_of(self, scores: Floats) -> dict[str, Any]:
        return {"log_prob": 0, "value": scores[:, -1]}

    def draw(
        self,
        memory: Buffer,
        steps: int,
        turns: int,
        rng: np.random.Generator,
        novelty: Novelty | None = None,
    ) -> Arrays:
        """Each step is drawn once before any is drawn again."""
        data = memory.newest(turns)
        settings = self.settings
        if novelty:
            data["reward"][:-1] += novelty.bonus(data["state"][1:]) * ~data["done"][:-1]
        advantages = gae(data, settings.gamma, settings.lambda_gae)
        data |= {"advantage": advantages, "return": advantages + data["value"]}
        size = settings.batch_size
        if self.network.carried:
            flat = _sequences(data, settings.sequence)
            size = max(size // flat["action"].shape[1], 1)
        else:
            are_steps = data["action"] != NO_ACTION
            if not are_steps.any():  # the agent was never there: nothing is learned from these
                are_steps[:] = True
            flat = {name: array[are_steps] for name, array in data.items()}
        count = len(flat["action"])
        passes = [rng.permutation(count) for _ in range(-(-steps * size // count))]
        order = np.concatenate(passes)[: steps * size].reshape(steps, size)
        extras = [name for name in self.extras if name != "value"]
        names = ("state", "action", "advantage", "return", *extras)
        return {name: flat[name][order] for name in names}

    def loss(self, leaves: State, state: State, batch: Arrays) -> torch.Tensor:
        settings = self.settings
        values, chosen, entropy, share = self._said(leaves, batch)
        old, advantage, returns = (
            self.tensor(batch[name]).flatten(1) for name in ("log_prob", "advantage", "return")
        )
        ratio = (chosen - old).exp()
        advantage = advantage - (advantage * share).sum(dim=1, keepdim=True)
        spread = (advantage.square() * share).sum(dim=1, keepdim=True).sqrt()
        advantage = advantage / (spread + 1e-8)
        clipped = ratio.clamp(1 - settings.clip_epsilon, 1 + settings.clip_epsilon)
        policy = -torch.minimum(ratio * advantage, clipped * advantage)
        value = (values - returns).square()
        loss = policy + settings.value_loss_coef * value - settings.entropy_coef * entropy
        return (loss * share).sum(dim=1)

    def measure(self, state: State, batch: Arrays) -> dict[str, torch.Tensor]:
        """Entropy, value, and how far the policy is from the one that acted (KL divergence)."""
        values, chosen, entropy, share = self._said(state, batch)
        change = chosen - self.tensor(batch["log_prob"]).flatten(1)
        numbers = {
            "entropy": entropy,
            "kl": change.exp() - 1 - change,  # of few samples, and never below 0
            "value": values,
        }
        return {name: (number * share).sum(dim=1) for name, number in numbers.items()}

    def _said(self, weights: State, batch: Arrays) -> tuple[torch.Tensor, ...]:
        """Values, log-probabilities of what was chosen, entropies, and each step's share."""
        inputs = self.tensor(self.view.encode(batch["state"]))
        outputs = self._outputs(weights, inputs, batch)
        actions = self.tensor(batch["action"]).flatten(1)
        steps = (actions >= 0).float()  # a turn that only looks is not a step
        share = steps / steps.sum(dim=1, keepdim=True).clamp(min=1)
        return outputs[..., -1], *self._judge(weights, outputs, batch), share

    def _judge(
        self, weights: State, outputs: torch.Tensor, batch: Arrays
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Log-probabilities of what was chosen, and the policies' entropies [agents, steps]."""
        actions = self.tensor(batch["action"]).flatten(1)
        log_probs = torch.log_softmax(outputs[..., :-1], dim=-1)
        chosen = log_probs.gather(-1, actions.clamp(min=0)[..., None]).squeeze(-1)
        return chosen, -(log_probs.exp() * log_probs).sum(dim=-1)

    def _outputs(self, weights: State, inputs: torch.Tensor, batch: Arrays) -> torch.Tensor:
        """What the networks say of all steps [agents, steps, outputs]: policies, then values."""
        features = self.features(weights, inputs, batch).flatten(1, -2)
        return self.only_possible(self.network.last(weights, features), inputs.flatten(1, -2))


def _sequences(data: Arrays, turns: int) -> Arrays:
    """All turns [turns, copies, ...], cut into sequences [sequences, turns, ...] of equal length.

    If they cannot be cut evenly, a sequence begins before the one before it has ended.
    """
    total = len(data["action"])
    pieces = -(-total // turns)
    length = -(-total // pieces)
    starts = np.linspace(0, total - length, pieces).astype(np.int64)
    rows = starts[:, None] + np.arange(length)
    cut = {name: np.swapaxes(array[rows], 1, 2) for name, array in data.items()}
    flat = {name: array.reshape(-1, *array.shape[2:]) for name, array in cut.items()}
    return flat | {"carried": flat["carried"][:, 0]}
