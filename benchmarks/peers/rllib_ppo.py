"""RLlib: PPO (its new API stack) on the common task, with two env runners and a local learner."""

from __future__ import annotations

import argparse
from importlib.metadata import version
from typing import Any

import common
import ray
import torch
from measure import publish
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import ValueFunctionAPI
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.execution.rollout_ops import synchronous_parallel_sample
from ray.tune.registry import register_env

PATIENCE = 600  # seconds that RLlib waits for its env runners


class TinyModule(TorchRLModule, ValueFunctionAPI):
    """Keisei's network; the mask comes with the observation, as in RLlib's own example."""

    def setup(self) -> None:
        self.network = common.AllLogits()

    def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        seen = batch[Columns.OBS]
        logits, values = self.network(seen["observations"])
        logits = common.masked(logits, seen["action_mask"])
        # RLlib hands the embeddings back to `compute_values`: so one forward pass does for both.
        return {Columns.ACTION_DIST_INPUTS: logits, Columns.EMBEDDINGS: values}

    def _forward_exploration(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        out = self._forward(batch)
        return {Columns.ACTION_DIST_INPUTS: out[Columns.ACTION_DIST_INPUTS]}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> torch.Tensor:
        if embeddings is not None:
            return embeddings
        return self.network(batch[Columns.OBS]["observations"])[1]


def configured(gamma: float = common.GAMMA, material_reward: float = 0.0) -> PPOConfig:
    register_env("shogi", lambda _: common.ShogiEnv(material_reward))
    config = PPOConfig().environment("shogi")
    config.env_runners(
        num_env_runners=common.WORKERS,
        num_envs_per_env_runner=common.GAMES,
        rollout_fragment_length=common.ROLLOUT,
        sample_timeout_s=PATIENCE,
    )
    config.learners(num_learners=0)  # the driver, which has nothing else to do
    config.rl_module(rl_module_spec=RLModuleSpec(module_class=TinyModule))
    config.training(
        train_batch_size_per_learner=common.ROLLOUT * common.ALL_GAMES,
        minibatch_size=common.MINIBATCH,
        num_epochs=common.EPOCHS,
        lr=common.LEARNING_RATE,
        gamma=gamma,
        lambda_=common.LAMBDA,
        clip_param=common.CLIP,
        vf_loss_coeff=common.VALUE_LOSS,
        entropy_coeff=common.ENTROPY,
        grad_clip=common.MAX_GRADIENT,
        use_kl_loss=False,  # the others have none
    )
    config.reporting(min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=0)
    return config


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--race", metavar="FOLDER")
    options = parser.parse_args()
    ray.init(num_cpus=common.WORKERS, include_dashboard=False, log_to_driver=False)
    torch.set_num_threads(common.WORKERS)
    config = configured(common.TWO_PLAYERS, common.MATERIAL) if options.race else configured()
    algorithm = config.build_algo()
    sampled = 0

    def collect() -> int:
        episodes = synchronous_parallel_sample(
            worker_set=algorithm.env_runner_group,
            max_env_steps=common.ROLLOUT * common.ALL_GAMES,
            sample_timeout_s=PATIENCE,
            _uses_new_env_runners=True,
        )
        return sum(len(episode) for episode in episodes)

    def train() -> int:
        nonlocal sampled
        before, results = sampled, algorithm.train()["env_runners"]
        sampled = int(results["num_env_steps_sampled_lifetime"])
        return sampled - before

    if options.race:
        common.race(train, algorithm.get_module().network, options.race)
        return
    train()  # sets up the environments and PyTorch's kernels
    rates = {"train": common.steps_per_second(train, options.seconds)}
    rates["collect"] = common.steps_per_second(collect, options.seconds)
    setup = f"{common.WORKERS} env runners of {common.GAMES} games, local learner"
    publish(rates, setup, {name: version(name) for name in ("ray", "torch")})
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    main()
