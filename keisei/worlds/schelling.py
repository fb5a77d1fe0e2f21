"""`keisei worlds schelling`: is a world a dilemma? What cooperating pays beside defecting.

For every number of agents that cooperate, by a script, the others defect. A world is a social
dilemma (Macy and Flache, 2002) if it is better for everybody to cooperate, and yet better for one
agent to defect: out of greed, if the others cooperate, or out of fear, if they do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from keisei.errors import KeiseiError
from keisei.figures import save_figure
from keisei.worlds.agents import Agent
from keisei.worlds.config import load_world_config
from keisei.worlds.environment import Environment
from keisei.worlds.models import ScriptedModel
from keisei.worlds.registry import find_world
from keisei.worlds.scripts import make_script

COPIES = 64


@dataclass(frozen=True)
class Payoffs:
    """Returns of one agent, by how many of the others cooperate: 0, 1, ... all of them."""

    cooperate: list[float]
    defect: list[float]

    @property
    def verdict(self) -> str:
        """Is it a dilemma, and why?

        >>> Payoffs(cooperate=[0, 3], defect=[1, 5]).verdict
        'a social dilemma, out of greed and fear'
        """
        reward, punishment = self.cooperate[-1], self.defect[0]
        temptation, sucker = self.defect[-1], self.cooperate[0]
        reasons = {"greed": temptation > reward, "fear": punishment > sucker}
        if reward <= punishment:
            return "not a social dilemma: all defecting is as good as all cooperating"
        if not any(reasons.values()):
            return "not a social dilemma: cooperating is better for each"
        return "a social dilemma, out of " + " and ".join(why for why, so in reasons.items() if so)


def measure(world: str, overrides: Sequence[str] = (), epochs: int = 4) -> Payoffs:
    """Play with every number of agents that cooperate; agents act in a random order."""
    given = load_world_config(world, None, [f"copies={COPIES}", *overrides])
    config = given.model_copy(update={"turn_order": "random"})
    kind = find_world(config.world)
    if not kind.strategies(0):
        raise KeiseiError(
            f"{world} has no strategies to cooperate and to defect: its class must have a "
            "method `strategies`"
        )
    count = kind(1, 0, **config.world_settings).num_agents
    cooperate, defect = [0.0] * count, [0.0] * count
    for cooperators in range(count + 1):
        place = kind(config.copies, config.seed, **config.world_settings)
        agents = []
        for number in range(count):
            name = "cooperate" if number < cooperators else "defect"
            strategy = kind.strategies(number)[name]
            script = make_script(place, strategy, config.seed + number + 1, number)
            agents.append(Agent(number, ScriptedModel(script)))
        results = Environment(place, agents, config).run_experiment(epochs)
        returns = np.mean([result.returns for result in results], axis=0)
        if cooperators:
            cooperate[cooperators - 1] = float(returns[:cooperators].mean())
        if cooperators < count:
            defect[cooperators] = float(returns[cooperators:].mean())
    return Payoffs(cooperate, defect)


def schelling(world: str, overrides: Sequence[str], plot: Path, epochs: int) -> None:
    """Measure, print a table and the verdict, and draw the diagram."""
    console = Console()
    payoffs = measure(world, overrides, epochs)
    table = Table(
        title=f"{world}: return of an agent, by what it does and how many others cooperate"
    )
    for column in ("others who cooperate", "cooperate", "defect"):
        table.add_column(column, justify="right")
    for others, (one, two) in enumerate(zip(payoffs.cooperate, payoffs.defect, strict=True)):
        table.add_row(str(others), f"{one:.2f}", f"{two:.2f}")
    console.print(table)
    draw(world, payoffs, plot)
    console.print(f"{world}: {payoffs.verdict}; diagram: {plot}", highlight=False, soft_wrap=True)


def draw(world: str, payoffs: Payoffs, path: Path) -> None:
    """The Schelling diagram as a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), dpi=100, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    others = np.arange(len(payoffs.defect))
    axes.plot(others, payoffs.cooperate, "o-", color="#0072b2", label="cooperates")
    axes.plot(others, payoffs.defect, "s-", color="#d55e00", label="defects")
    axes.set_title(world.replace("$", r"\$"), loc="left", fontweight="bold")
    axes.set_xlabel("others who cooperate")
    axes.set_ylabel("return of an agent who")
    axes.set_xticks(others if len(others) <= 10 else others[:: len(others) // 10])
    axes.grid(color="#e4e4e4", lw=0.8)
    axes.spines[:].set_visible(False)
    axes.legend(frameon=False)
    save_figure(figure, path)
