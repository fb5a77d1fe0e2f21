"""Stable-Baselines3: MaskablePPO on the common task.

`--envs vector` (the default) steps all games in one process as one `VecEnv`, `--envs dummy` a list
of environments one by one. `SubprocVecEnv` is not tried: it has a process for each of 128 games.
"""

from __future__ import annotations

import argparse
from importlib.metadata import version
from typing import Any

import common
import gymnasium as gym
import numpy as np
import torch
from measure import publish
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.distributions import MaskableCategoricalDistribution
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.callbacks import ConvertCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv


class PlanesOnly(gym.ObservationWrapper):
    """MaskablePPO asks for the mask by a method; observations are the planes alone."""

    observation_space = common.PLANES

    def observation(self, observation: dict[str, Any]) -> np.ndarray:
        return observation["observations"]

    def action_masks(self) -> np.ndarray:
        return self.unwrapped.action_masks()


class ShogiVecEnv(VecEnv):
    """All games stepped together, by the interface of SB3's vectorised environments."""

    def __init__(self, num_envs: int, material_reward: float = 0.0) -> None:
        self._games = common.ShogiGames(num_envs, material_reward=material_reward)
        super().__init__(num_envs, common.PLANES, common.ACTIONS)

    def reset(self) -> np.ndarray:
        planes, self._masks = self._games.seen()
        return planes

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self):
        rewards, decided, cut = self._games.step(self._actions)
        planes, self._masks = self._games.seen()
        return planes, rewards, decided | cut, [{} for _ in range(self.num_envs)]

    def env_method(self, method_name: str, *args: Any, indices=None, **settings: Any) -> list[Any]:
        assert method_name == "action_masks"
        return list(self._masks)

    def has_attr(self, attr_name: str) -> bool:
        return attr_name == "action_masks"

    def get_attr(self, attr_name: str, indices=None) -> list[Any]:
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices=None) -> None:
        raise AttributeError(attr_name)

    def env_is_wrapped(self, wrapper_class, indices=None) -> list[bool]:
        return [False] * self.num_envs

    def close(self) -> None:
        """Nothing is open."""


class TinyPolicy(MaskableActorCriticPolicy):
    """Keisei's network in the place of SB3's extractor and linear heads."""

    def _build(self, lr_schedule) -> None:
        self.network = common.AllLogits()
        self.optimizer = torch.optim.Adam(self.parameters(), lr=lr_schedule(1), eps=1e-5)

    def _look(self, obs: torch.Tensor, masks: Any) -> tuple[Any, torch.Tensor]:
        logits, values = self.network(obs)
        distribution = MaskableCategoricalDistribution(logits.shape[1]).proba_distribution(logits)
        if masks is not None:
            distribution.apply_masking(masks)
        return distribution, values

    def forward(self, obs, deterministic=False, action_masks=None):
        distribution, values = self._look(obs, action_masks)
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, values, distribution.log_prob(actions)

    def evaluate_actions(self, obs, actions, action_masks=None):
        distribution, values = self._look(obs, action_masks)
        return values, distribution.log_prob(actions), distribution.entropy()

    def predict_values(self, obs):
        return self.network(obs)[1]


def make_envs(kind: str, material_reward: float) -> VecEnv:
    if kind == "vector":
        return ShogiVecEnv(common.ALL_GAMES, material_reward)
    return DummyVecEnv([lambda: PlanesOnly(common.ShogiEnv())] * common.ALL_GAMES)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--envs", choices=["vector", "dummy"], default="vector")
    parser.add_argument("--race", metavar="FOLDER")
    parser.add_argument("--discount", type=float, default=common.TWO_PLAYERS, help="in a race")
    options = parser.parse_args()
    torch.set_num_threads(common.WORKERS)
    envs = make_envs(options.envs, common.MATERIAL if options.race else 0.0)
    model = MaskablePPO(
        TinyPolicy,
        envs,
        learning_rate=common.LEARNING_RATE,
        n_steps=common.ROLLOUT,
        batch_size=common.MINIBATCH,
        n_epochs=common.EPOCHS,
        gamma=options.discount if options.race else common.GAMMA,
        gae_lambda=common.LAMBDA,
        clip_range=common.CLIP,
        ent_coef=common.ENTROPY,
        vf_coef=common.VALUE_LOSS,
        max_grad_norm=common.MAX_GRADIENT,
        device="cpu",
    )
    callback = ConvertCallback(None)
    callback.init_callback(model)

    def collect() -> int:
        before = model.num_timesteps
        model.collect_rollouts(model.env, callback, model.rollout_buffer, common.ROLLOUT)
        return model.num_timesteps - before

    def train() -> int:
        before = model.num_timesteps
        model.learn(common.ROLLOUT * common.ALL_GAMES, reset_num_timesteps=False)
        return model.num_timesteps - before

    if options.race:
        common.race(train, model.policy.network, options.race)
        return
    train()  # sets up the environments and PyTorch's kernels
    rates = {
        "collect": common.steps_per_second(collect, options.seconds),
        "train": common.steps_per_second(train, options.seconds),
    }
    setup = f"{common.ALL_GAMES} games, {options.envs}; PyTorch with {common.WORKERS} threads"
    versions = {name: version(name) for name in ("stable-baselines3", "sb3-contrib", "torch")}
    publish(rates, setup, versions)
    envs.close()


if __name__ == "__main__":
    main()
