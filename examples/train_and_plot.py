"""Train with a callback that stops at a goal, then plot what was learned.

It takes about five minutes on two cores; settings may be changed as with the command, for example
`python train_and_plot.py training.total_timesteps=65536`.
"""

import sys
from collections.abc import Sequence

import matplotlib.pyplot as plt

import keisei
from keisei.evaluation.match import MatchResult
from keisei.training.trainer import Trainer


class StopAtGoal(keisei.Callback):
    """Ends the training once it wins nine of ten games against random moves."""

    def on_evaluation(self, trainer: Trainer, results: Sequence[MatchResult]) -> None:
        if results[0].win_rate >= 0.9:
            raise keisei.StopRequested


settings = ["evaluation.interval=32768", *sys.argv[1:]]
run = keisei.train("quick", overrides=settings, callbacks=[StopAtGoal()])

wins = run.metrics("win_rate/random")
plt.plot(wins["step"], wins["value"], marker="o")
plt.xlabel("moves played")
plt.ylabel("games won against random moves")
plt.savefig("win_rate.png")
print(f"{run.folder}: {list(wins['value'])[-1]:.0%} won; see win_rate.png")
