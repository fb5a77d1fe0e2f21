"""Does Keisei's double DQN learn as well as Stable-Baselines3's DQN? (after `make peers`)

One agent in treasure hunt: the same experience, the same number of gradient steps, the same
network, learning rate, discount, batch and share of random actions; all else is each side's own
default. The result is the mean return of an episode in the last tenth of the training. Writes
worlds.json beside this file, and prints a table as Markdown.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COPIES, EPISODE = 8, 100
GAMMA, BATCH, RATE, HIDDEN, MEMORY = 0.95, 64, 5e-4, [256, 128], 100_000
PER_STEP = 100  # experiences for each gradient step
LAST_EPSILON = 0.05  # reached after half of the turns


def keisei(turns: int, seed: int) -> list[float]:
    """The mean return of the episodes of each epoch, by Keisei."""
    from keisei.worlds import make_environment

    epochs = turns // (COPIES * EPISODE)
    learner = {
        "gamma": GAMMA,
        "batch_size": BATCH,
        "learning_rate": RATE,
        "hidden": HIDDEN,
        "memory": MEMORY,
        "replay_ratio": 1 / PER_STEP,
        "epsilon_epochs": max(epochs // 2, 1),
        "epsilon_end": LAST_EPSILON,
    }
    settings = [f"double_dqn.{name}={value}" for name, value in learner.items()]
    world = [f"copies={COPIES}", f"seed={seed}", "world_settings.num_agents=1"]
    with make_environment("treasure_hunt", [*settings, *world]) as environment:
        return [float(result.returns[0]) for result in environment.run_experiment(epochs)]


def sb3(turns: int, seed: int) -> list[float]:
    """The same by Stable-Baselines3."""
    from sb3_worlds import HuntVecEnv
    from stable_baselines3 import DQN

    envs = HuntVecEnv(COPIES, seed, EPISODE)
    every = 25  # turns of all copies between trainings
    model = DQN(
        "MlpPolicy",
        envs,
        gamma=GAMMA,
        batch_size=BATCH,
        learning_rate=RATE,
        buffer_size=MEMORY,
        train_freq=every,
        gradient_steps=every * COPIES // PER_STEP,
        learning_starts=EPISODE * COPIES,  # Keisei, too, learns first after an episode
        exploration_fraction=0.5,
        exploration_final_eps=LAST_EPSILON,
        target_update_interval=every,
        tau=0.02,  # two gradient steps of 0.01 each
        policy_kwargs={"net_arch": HIDDEN},
        seed=seed,
        device="cpu",
    )
    model.learn(turns)
    return envs.episode_returns


def last_tenth(returns: list[float]) -> float:
    """The mean of the last tenth, at least of one."""
    return float(np.mean(returns[-max(len(returns) // 10, 1) :]))


def measure(learner: str, turns: int, seed: int) -> float:
    """Train in a process of its own, in the learner's environment."""
    own = ROOT / ".venv-peers" / "sb3" / "bin" / "python"
    python = str(own) if learner == "sb3" else sys.executable
    words = ["--learner", learner, "--turns", str(turns), "--seed", str(seed)]
    done = subprocess.run(
        [python, str(HERE / "worlds.py"), *words],
        capture_output=True,
        text=True,
        timeout=3600,
        check=True,
        cwd=ROOT,
    )
    return float(json.loads(done.stdout.splitlines()[-1])["last_tenth"])


def compare(turns: int, seeds: int) -> None:
    """Both learners, all seeds, in turn."""
    results: dict[str, list[float]] = {"keisei": [], "sb3": []}
    for seed in range(1, seeds + 1):
        for learner, found in results.items():
            found.append(measure(learner, turns, seed))
            print(f"seed {seed}, {learner}: {found[-1]:.1f}", flush=True)
    (HERE / "worlds.json").write_text(json.dumps({"turns": turns, **results}, indent=2) + "\n")
    print("\n| | mean return | of each seed |\n|---|---|---|")
    for learner, label in (("keisei", "Keisei, double DQN"), ("sb3", "Stable-Baselines3, DQN")):
        found = results[learner]
        each = ", ".join(f"{value:.1f}" for value in found)
        print(f"| {label} | {statistics.mean(found):.1f} | {each} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--learner", choices=["keisei", "sb3"], help="train this one alone")
    parser.add_argument("--turns", type=int, default=80_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    if options.learner is None:
        compare(options.turns, options.seeds)
        return
    import torch

    torch.set_num_threads(1)
    train = keisei if options.learner == "keisei" else sb3
    print(json.dumps({"last_tenth": last_tenth(train(options.turns, options.seed))}))


if __name__ == "__main__":
    main()
