"""A plain PPO loop in one file, after CleanRL's `ppo.py`: no library but PyTorch.

It keeps planes and masks in tensors, samples by `Categorical`, and steps all games in one process.
"""

from __future__ import annotations

import argparse
from importlib.metadata import version

import common
import torch
from measure import publish
from torch import Tensor, nn
from torch.distributions import Categorical

T, G = common.ROLLOUT, common.ALL_GAMES


class Loop:
    """The agent, its games and its storage."""

    def __init__(self, gamma: float = common.GAMMA, material_reward: float = 0.0) -> None:
        self.gamma = gamma
        self.network = common.AllLogits()
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), lr=common.LEARNING_RATE, eps=1e-5
        )
        self.games = common.ShogiGames(G, material_reward=material_reward)
        self.planes = torch.zeros(T, G, *common.PLANES.shape)
        self.masks = torch.zeros(T, G, *common.MASK.shape, dtype=torch.bool)
        self.actions = torch.zeros(T, G, dtype=torch.long)
        self.log_probs, self.values, self.rewards, self.dones = torch.zeros(4, T, G)
        self.seen = self._look()
        self.global_step = 0

    def _look(self) -> tuple[Tensor, Tensor]:
        planes, masks = self.games.seen()
        return torch.from_numpy(planes), torch.from_numpy(masks).bool()

    @torch.no_grad()
    def collect(self) -> int:
        """Play `T` moves in all games."""
        for t in range(T):
            self.planes[t], self.masks[t] = self.seen
            logits, self.values[t] = self.network(self.seen[0])
            policy = Categorical(logits=common.masked(logits, self.seen[1]), validate_args=False)
            self.actions[t] = action = policy.sample()
            self.log_probs[t] = policy.log_prob(action)
            rewards, decided, cut = self.games.step(action.numpy())
            self.rewards[t] = torch.from_numpy(rewards)
            self.dones[t] = torch.from_numpy(decided | cut)
            self.seen = self._look()
        self.global_step += T * G
        return T * G

    @torch.no_grad()
    def advantages(self) -> Tensor:
        """CleanRL's GAE, which takes all steps for one player's unless the discount is negative."""
        advantages, last = torch.zeros(T, G), torch.zeros(G)
        next_values = self.network(self.seen[0])[1]
        for t in reversed(range(T)):
            alive = 1 - self.dones[t]
            delta = self.rewards[t] + self.gamma * next_values * alive - self.values[t]
            advantages[t] = last = delta + self.gamma * common.LAMBDA * alive * last
            next_values = self.values[t]
        return advantages

    def train(self) -> int:
        """One update: collect, and learn from it."""
        steps = self.collect()
        advantages = self.advantages()
        returns = (advantages + self.values).flatten()
        stored = [x.flatten(0, 1) for x in (self.planes, self.masks, self.actions, self.log_probs)]
        for _ in range(common.EPOCHS):
            for batch in torch.randperm(T * G).split(common.MINIBATCH):
                self.learn(*(x[batch] for x in (*stored, advantages.flatten(), returns)))
        return steps

    def learn(self, planes, masks, actions, old_log_probs, advantages, returns) -> None:
        """One gradient step."""
        logits, values = self.network(planes)
        policy = Categorical(logits=common.masked(logits, masks), validate_args=False)
        ratio = (policy.log_prob(actions) - old_log_probs).exp()
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        clipped = ratio.clamp(1 - common.CLIP, 1 + common.CLIP)
        policy_loss = -torch.min(ratio * advantages, clipped * advantages).mean()
        value_loss = (values - returns).square().mean()
        loss = policy_loss + common.VALUE_LOSS * value_loss
        loss = loss - common.ENTROPY * policy.entropy().mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), common.MAX_GRADIENT)
        self.optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--race", metavar="FOLDER")
    parser.add_argument("--discount", type=float, default=common.TWO_PLAYERS, help="in a race")
    options = parser.parse_args()
    torch.set_num_threads(common.WORKERS)
    if options.race:
        loop = Loop(options.discount, common.MATERIAL)
        common.race(loop.train, loop.network, options.race)
        return
    loop = Loop()
    loop.train()  # sets up PyTorch's kernels
    rates = {
        "collect": common.steps_per_second(loop.collect, options.seconds),
        "train": common.steps_per_second(loop.train, options.seconds),
    }
    setup = f"{G} games in one process; PyTorch with {common.WORKERS} threads"
    publish(rates, setup, {"torch": version("torch")})


if __name__ == "__main__":
    main()
