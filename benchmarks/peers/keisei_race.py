"""Keisei in the race: `keisei train`, or with `--config quick`, but for what the network sees."""

from __future__ import annotations

import argparse

import common

import keisei
from keisei.runs.checkpoint import trained_weights

SETTINGS = [
    "model.planes=core46",  # what the others see
    "env.material_reward=" + str(common.MATERIAL),
    f"training.parallel.num_workers={common.WORKERS}",
    "training.parallel.enabled=true",
    "training.total_timesteps=100000000",
    "training.checkpoint_interval=100000000",
    "evaluation.opponents=[]",
    "display.live=never",
]


class Show(keisei.Callback):
    """Takes part in the race."""

    def __init__(self, folder: str) -> None:
        self._show = common.Show(folder)

    def on_update(self, trainer, finished) -> None:
        steps = trainer.progress.steps
        if not self._show(steps, lambda: trained_weights({"agent": trainer.agent.state_dict()})):
            raise keisei.StopRequested


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--race", metavar="FOLDER", required=True)
    parser.add_argument("--config")
    options = parser.parse_args()
    keisei.train(options.config, SETTINGS, callbacks=[Show(options.race)])


if __name__ == "__main__":
    main()
