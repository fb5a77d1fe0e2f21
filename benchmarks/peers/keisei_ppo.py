"""Keisei on the common task: two workers, collecting and learning in turn (`mode: sync`)."""

from __future__ import annotations

import argparse
from importlib.metadata import version

import common
from measure import publish

from keisei.benchmarks.collect import settings
from keisei.core.experience_buffer import ExperienceBuffer
from keisei.core.ppo_agent import PPOAgent
from keisei.processes.machine import keep_freed_memory
from keisei.training.parallel import ParallelManager


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=8.0)
    options = parser.parse_args()
    keep_freed_memory()  # as `keisei train` does it
    precision = [f"training.precision={common.PRECISION}"]
    config = settings(
        "tiny", common.WORKERS, "sync", common.ROLLOUT, games=common.GAMES, more=precision
    )
    config.training.minibatch_size = common.MINIBATCH
    config.model.planes = "core46"  # what the others see
    agent = PPOAgent(config, "cpu")
    buffer = ExperienceBuffer(config.training.gamma, config.training.lambda_gae)
    with ParallelManager(config, agent) as manager:

        def collect() -> int:
            manager.synchronize_models()
            buffer.clear()
            for rollout in manager.collect_experiences():
                buffer.add_batch(rollout)
            return len(buffer)

        def train() -> int:
            steps = collect()
            buffer.compute_advantages_and_returns()
            agent.learn(buffer)
            return steps

        train()  # sets up PyTorch's kernels
        rates = {
            "collect": common.steps_per_second(collect, options.seconds),
            "train": common.steps_per_second(train, options.seconds),
        }
    setup = f"{common.WORKERS} workers of {common.GAMES} games, {common.PRECISION}"
    publish(rates, setup, {name: version(name) for name in ("keisei", "rsshogi", "torch")})


if __name__ == "__main__":
    main()
