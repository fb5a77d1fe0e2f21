"""`keisei benchmark learn`: PPO updates beside the bare forward and backward pass."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from keisei.benchmarks.report import interleave, median_ratio, publish
from keisei.config_schema import AppConfig, load_config
from keisei.core.experience_buffer import ExperienceBuffer
from keisei.core.ppo_agent import PPOAgent
from keisei.processes.machine import keep_freed_memory
from keisei.selfplay.shard import make_shard, new_rollout


def ppo_update(agent: PPOAgent, buffer: ExperienceBuffer) -> Callable[[], int]:
    """All of an update: minibatches, planes, losses, gradients, Adam."""

    def run() -> int:
        agent.learn(buffer)
        return len(buffer) * agent.config.training.ppo_epochs

    return run


def forward_backward(agent: PPOAgent, buffer: ExperienceBuffer) -> Callable[[], int]:
    """Only forward and backward, on the same minibatches with planes made beforehand."""
    size = agent.config.training.minibatch_size
    batches = []
    for batch in buffer.minibatches(size, np.random.default_rng(1)):
        planes = agent.network.planes(batch.positions.observations)
        rows = torch.from_numpy(batch.positions.rows())
        legal = torch.from_numpy(batch.positions.legal.astype(np.int64))
        batches.append((planes, rows, legal))

    def run() -> int:
        for planes, rows, legal in batches:
            agent.network.zero_grad(set_to_none=True)
            with agent.precision():
                policy, values = agent.network(planes)
            scores = agent.network.scores(policy, rows.to(agent.device), legal.to(agent.device))
            (scores.sum() + values.sum()).backward()
        return len(buffer)

    return run


def settings(
    preset: str, minibatch: int = 128, length: int = 32, precision: str = "float32"
) -> AppConfig:
    """One epoch over the steps of 64 games, 2,048 of them by default, never stopped early."""
    return load_config(
        overrides=[
            f"model.preset={preset}",
            f"training.precision={precision}",
            "training.ppo_epochs=1",
            "training.target_kl=0",
            f"training.minibatch_size={minibatch}",
            "training.parallel.num_workers=1",
            "training.parallel.num_envs_per_worker=64",
            f"training.parallel.rollout_length={length}",
        ]
    )


def filled_buffer(config: AppConfig, agent: PPOAgent) -> ExperienceBuffer:
    """One rollout that the agent played, ready to learn from."""
    buffer = ExperienceBuffer(config.training.gamma, config.training.lambda_gae)
    rollout = new_rollout(config)
    make_shard(config, 0).collect(agent.evaluate, rollout, agent.version)
    buffer.add_batch(rollout)
    buffer.compute_advantages_and_returns()
    return buffer


def run(
    json_file: Path | None = None,
    preset: str = "tiny",
    rounds: int = 7,
    length: int = 32,
    precision: str = "float32",
) -> None:
    """Measure, print a table, write JSON; another precision is measured beside float32."""
    keep_freed_memory()  # as `keisei train` does it
    config = settings(preset, length=length, precision=precision)
    agent = PPOAgent(config)
    buffer = filled_buffer(config, agent)
    contenders = {
        "forward_backward": forward_backward(agent, buffer),
        "update": ppo_update(agent, buffer),
    }
    if precision != "float32":
        plain = PPOAgent(settings(preset, length=length))
        contenders["update in float32"] = ppo_update(plain, filled_buffer(plain.config, plain))
    interleave(contenders, 1)  # the first calls set up PyTorch's kernels
    rates = interleave(contenders, rounds)
    ratio = median_ratio(rates, "update", "forward_backward")
    bare, update = (statistics.median(rates[name]) for name in ("forward_backward", "update"))
    parameters = sum(weight.numel() for weight in agent.network.parameters())
    rows = [
        (f"network {preset}", f"{parameters:,} weights"),
        ("forward + backward alone", f"{bare:,.0f} samples/s"),
        ("PPO update", f"{update:,.0f} samples/s  ({ratio:.2f} of it)"),
    ]
    result: dict[str, object] = {
        "preset": preset,
        "precision": precision,
        "parameters": parameters,
        "minibatch_size": config.training.minibatch_size,
        "threads": torch.get_num_threads(),
        "forward_backward_samples_per_s": bare,
        "update_samples_per_s": update,
        "ratio_to_forward_backward": ratio,
    }
    if precision != "float32":
        gain = median_ratio(rates, "update", "update in float32")
        rows.append(("beside float32", f"{gain:.2f} times as fast"))
        result["ratio_to_float32"] = gain
    publish(
        f"Learning on {agent.device}, {torch.get_num_threads()} threads", rows, result, json_file
    )
