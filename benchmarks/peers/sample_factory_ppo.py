"""Sample Factory: asynchronous PPO on the common task, with two rollout workers.

Its release on PyPI knows no action masks: the mask is part of the observation, and the network
lowers the logits of illegal actions before Sample Factory sees them. Each worker's games are two
vectorised environments (`batched_sampling`), one of which moves while the network looks at the
other.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import common
import gymnasium as gym
import numpy as np
import torch
from measure import publish
from sample_factory.algo.runners.runner import AlgoObserver, Runner
from sample_factory.algo.sampling.simplified_sampling_api import SyncSamplingAPI
from sample_factory.algo.utils.action_distributions import get_action_distribution
from sample_factory.algo.utils.context import global_model_factory
from sample_factory.algo.utils.env_info import obtain_env_info_in_a_separate_process
from sample_factory.algo.utils.rl_utils import samples_per_trajectory
from sample_factory.algo.utils.tensor_dict import TensorDict
from sample_factory.algo.utils.torch_utils import init_torch_runtime
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.envs.env_utils import register_env
from sample_factory.model.actor_critic import ActorCritic
from sample_factory.model.model_utils import model_device
from sample_factory.train import make_runner

SPLITS = 2  # double buffering
START = time.time()
RACE_SECONDS = float(os.environ.get("RACE_SECONDS", "0"))  # known to its workers, too


class ShogiAgents(gym.Env):
    """Half of a worker's games, as one environment with many agents."""

    is_multiagent = True
    num_agents = common.GAMES // SPLITS
    observation_space = gym.spaces.Dict({"obs": common.PLANES, "action_mask": common.MASK})
    action_space = common.ACTIONS
    render_mode = None

    def __init__(self, seed: int) -> None:
        reward = common.MATERIAL if RACE_SECONDS else 0.0
        self._games = common.ShogiGames(self.num_agents, seed, reward)

    def _seen(self) -> dict[str, np.ndarray]:
        planes, masks = self._games.seen()
        return {"obs": planes, "action_mask": masks}

    def reset(self, **_: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return self._seen(), {}

    def step(self, actions: Any) -> tuple[Any, ...]:
        rewards, decided, cut = self._games.step(np.asarray(actions))
        return self._seen(), rewards, decided, cut, {}


class TinyActorCritic(ActorCritic):
    """Keisei's network. It has no recurrent core, so the head does all."""

    def __init__(self, obs_space: Any, action_space: Any, cfg: Any) -> None:
        super().__init__(obs_space, action_space, cfg)
        self.network = common.AllLogits()

    def device_for_input_tensor(self, name: str) -> torch.device:
        return model_device(self)

    def type_for_input_tensor(self, name: str) -> torch.dtype:
        return torch.int8 if name == "action_mask" else torch.float32

    def forward_head(self, seen: dict[str, torch.Tensor]) -> torch.Tensor:
        logits, self._values = self.network(seen["obs"])
        return common.masked(logits, seen["action_mask"])

    def forward_core(self, head_output: torch.Tensor, rnn_states: Any) -> tuple[Any, Any]:
        return head_output, rnn_states

    def forward_tail(
        self, core_output: torch.Tensor, values_only: bool, sample_actions: bool
    ) -> TensorDict:
        result = TensorDict(values=self._values)
        if not values_only:
            result["action_logits"] = core_output
            self.last_action_distribution = get_action_distribution(self.action_space, core_output)
            self._maybe_sample_actions(sample_actions, result)
        return result

    def forward(self, seen: Any, rnn_states: Any, values_only: bool = False) -> TensorDict:
        result = self.forward_tail(self.forward_head(seen), values_only, sample_actions=True)
        result["new_rnn_states"] = rnn_states
        return result


def make_env(name: str, cfg: Any, env_config: Any, render_mode: Any = None) -> ShogiAgents:
    return ShogiAgents(env_config.env_id if env_config else 0)


def make_network(cfg: Any, obs_space: Any, action_space: Any) -> TinyActorCritic:
    return TinyActorCritic(obs_space, action_space, cfg)


def configured(folder: str, **changes: Any) -> Any:
    """Sample Factory's settings; it keeps what it writes in `folder`."""
    register_env("shogi", make_env)
    global_model_factory().register_actor_critic_factory(make_network)
    settings = {
        "env": "shogi",
        "experiment": "peers",
        "train_dir": folder,
        "restart_behavior": "overwrite",
        "device": "cpu",
        "num_workers": common.WORKERS,
        "num_envs_per_worker": SPLITS,
        "worker_num_splits": SPLITS,
        "batched_sampling": True,
        "rollout": common.ROLLOUT,
        "batch_size": common.MINIBATCH,
        "num_batches_per_epoch": common.ROLLOUT * common.ALL_GAMES // common.MINIBATCH,
        "num_epochs": common.EPOCHS,
        "learning_rate": common.LEARNING_RATE,
        "gamma": common.GAMMA,
        "gae_lambda": common.LAMBDA,
        "ppo_clip_ratio": common.CLIP,
        "value_loss_coeff": common.VALUE_LOSS,
        "exploration_loss_coeff": common.ENTROPY,
        "max_grad_norm": common.MAX_GRADIENT,
        "use_rnn": False,
        "normalize_input": False,
        "normalize_returns": False,
        "decorrelate_experience_max_seconds": 0,
        "save_every_sec": 100_000,
        "train_for_env_steps": 10**12,
        **changes,
    }
    arguments = [f"--{name}={value}" for name, value in settings.items()]
    parser, _ = parse_sf_args(arguments)
    return parse_full_cfg(parser, arguments)


def collecting(cfg: Any, seconds: float) -> float:
    """Steps per second of the sampler alone, after each worker has handed over a rollout."""
    init_torch_runtime(cfg)
    sampler = SyncSamplingAPI(cfg, obtain_env_info_in_a_separate_process(cfg))
    sampler.start()

    def collect() -> int:
        trajectory = sampler.get_trajectories_sync()
        assert trajectory is not None, "Sample Factory's sampler has stopped"
        return samples_per_trajectory(trajectory)

    warm = 0
    while warm < common.ROLLOUT * common.ALL_GAMES:
        warm += collect()
    rate = common.steps_per_second(collect, seconds)
    sampler.stop()
    return rate


class Clock(AlgoObserver):
    """Notes after each training iteration how many steps were learned from, and stops in time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.notes: list[tuple[float, int]] = []

    def on_training_step(self, runner: Runner, training_iteration_since_resume: int) -> None:
        self.notes.append((time.perf_counter(), sum(runner.env_steps.values())))
        if len(self.notes) > 2 and self.notes[-1][0] - self.notes[1][0] >= self._seconds:
            runner.cfg.train_for_seconds = -1  # it counts them from 0

    def rate(self) -> float:
        (start, before), (end, after) = self.notes[1], self.notes[-1]  # the first warmed up
        return (after - before) / (end - start)


def training(cfg: Any, seconds: float) -> float:
    """Train for so long; returns the steps per second that the learner learned from."""
    clock = Clock(seconds)
    cfg, runner = make_runner(cfg)
    runner.register_observer(clock)
    runner.init()
    runner.run()
    return clock.rate()


def race(folder: str, discount: float) -> None:
    """Train for the length of the race, then show all that was saved on the way, with its time.

    It learns while it plays, so it cannot wait for a match as the others do.
    """
    every = {"save_every_sec": int(4 * common.SHOW_EVERY), "keep_checkpoints": 10_000}
    training(configured(folder, gamma=discount, **every), RACE_SECONDS)
    for file in sorted(Path(folder).rglob("checkpoint_0*.pth"), key=lambda f: f.stat().st_mtime):
        saved = torch.load(file, weights_only=False)
        weights = common.AllLogits()
        own = {
            name.removeprefix("network."): tensor
            for name, tensor in saved["model"].items()
            if name.startswith("network.")
        }
        weights.load_state_dict(own)
        seconds = file.stat().st_mtime - START
        if not common.show(Path(folder), saved["env_steps"], weights.tower.state_dict(), seconds):
            return


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--race", metavar="FOLDER")
    parser.add_argument("--discount", type=float, default=common.TWO_PLAYERS, help="in a race")
    options = parser.parse_args()
    if options.race:
        race(options.race, options.discount)
        return
    with tempfile.TemporaryDirectory() as folder:
        cfg = configured(folder)
        rates = {
            "collect": collecting(cfg, options.seconds),
            "train": training(cfg, options.seconds),
        }
    setup = f"asynchronous, {common.WORKERS} workers of {common.GAMES} games, double-buffered"
    publish(rates, setup, {name: version(name) for name in ("sample-factory", "torch")})


if __name__ == "__main__":
    main()
