"""Watching an episode of a run: live in the terminal, or as a film; a person may join in."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from keisei.errors import KeiseiError
from keisei.runs.checkpoint import CheckpointStore, understanding
from keisei.runs.run import Run
from keisei.worlds.agents import make_algorithm
from keisei.worlds.config import LearnerSettings, WorldRunConfig
from keisei.worlds.drawing import colored_text, frame, legend_text
from keisei.worlds.environment import Environment
from keisei.worlds.film import check_film, write_film
from keisei.worlds.models import HumanModel, RandomModel
from keisei.worlds.parallel_environment import build
from keisei.worlds.pettingzoo_world import PettingZooWorld
from keisei.worlds.registry import AnyWorld, is_pettingzoo, make_world
from keisei.worlds.training import load_run_config
from keisei.worlds.world import World

if TYPE_CHECKING:
    from PIL.Image import Image

KEYS = {  # by what they do; a world has some of these
    "up": "w",
    "down": "s",
    "forward": "w",
    "backward": "s",
    "left": "a",
    "right": "d",
    "turn left": "j",
    "turn right": "l",
    "stay": " ",
    "clean": "e",
    "hunt": "f",
    "zap": "f",
    "interact": "f",
}


def load_episode(
    name: str,
    seed: int,
    human: int | None = None,
    trust: bool = False,
    runs: Path = Path("runs"),
    drawn: bool = False,
) -> Environment:
    """One copy of a run's world, with its agents as they are in the newest checkpoint."""
    run = Run.open(name, runs, of_world=True)
    return load_episode_of(run, seed, human, trust, drawn=drawn)


def load_episode_of(
    run: Run,
    seed: int,
    human: int | None = None,
    trust: bool = False,
    limit: int | None = None,
    drawn: bool = False,
    copies: int = 1,
) -> Environment:
    """The same, of a run that is open; checkpoints of more than `limit` bytes are passed by.

    `drawn`: a PettingZoo environment is to make pictures of itself.
    """
    overrides = [f"copies={copies}", f"seed={seed}"]
    overrides += ["parallel.enabled=false", "parallel.train_interval=1"]
    config = load_run_config(run, overrides, trust)
    if drawn and is_pettingzoo(config.world):
        config.world_settings["render_mode"] = "rgb_array"
    path, state = CheckpointStore(run.checkpoints_dir).latest(limit)
    world = make_world(config)
    _check_size(config, world, path)
    environment = build(config, world=world)
    with understanding(f"the settings do not fit the checkpoint {path}"):
        _take_over(environment, state["environment"])
    if human is not None:
        _join(environment, environment.world, human)
    return environment


def _take_over(environment: Environment, state: dict[str, Any]) -> None:
    """Let the agents act with the weights of a checkpoint."""
    for agent, saved in zip(environment.agents, state["models"], strict=True):
        if not isinstance(agent.model, RandomModel):
            load = getattr(agent.model, "load_policy", None) or agent.model.load_state_dict
            load(saved)
        agent.start_epoch(int(state["epoch"]))


def _check_size(config: WorldRunConfig, world: AnyWorld, checkpoint: Path) -> None:
    """Refuse settings of larger networks than the checkpoint can hold, before they are made."""
    weights = 0
    for index in range(world.num_agents):
        kind, settings = config.agent(index)
        if isinstance(settings, LearnerSettings):
            layout = make_algorithm(kind, settings, world, index).layout
            weights += sum(rows * columns for rows, columns, _ in layout.values())
    if 4 * weights > checkpoint.stat().st_size:
        raise KeiseiError(f"the settings are of larger networks than {checkpoint} has")


def _join(environment: Environment, world: AnyWorld, human: int) -> None:
    from click import getchar

    if not isinstance(world, World):
        raise KeiseiError(f"{world.name} cannot be played by a person: it is not a grid world")
    if not 0 <= human < world.num_agents:
        raise KeiseiError(f"there is no agent {human}: choose 0 to {world.num_agents - 1}")
    keys = {KEYS[what]: number for number, what in enumerate(world.actions) if what in KEYS}
    environment.agents[human].model = HumanModel(keys, getchar)


def watch(
    name: str,
    film: Path | None = None,
    human: int | None = None,
    seed: int = 0,
    turns_per_s: float = 8.0,
    console: Console | None = None,
    trust: bool = False,
    runs: Path = Path("runs"),
) -> None:
    """Show an episode; with `film`, write it there instead; `trust` is for a world that is code."""
    console = console or Console()
    if film is not None:
        check_film(film)
    environment = load_episode(name, seed, human, trust, runs, drawn=film is not None)
    world = environment.world
    world.reset()
    if film is not None:
        frames = [_picture(world)]
        environment.on_turn = lambda: frames.append(_picture(world))
        _play(environment)
        write_film(frames, film)
        console.print(f"{len(frames)} frames written to {film}")
    elif not isinstance(world, World):
        _play(environment)
        console.print("to see an episode of a PettingZoo environment, add --film FILE.gif")
    elif console.is_terminal:
        _show(environment, world, console, pause=0 if human is not None else 1 / turns_per_s)
    else:
        _play(environment)
        console.print(str(world), markup=False, highlight=False)
    got = ", ".join(f"agent {i} {value:.1f}" for i, value in enumerate(environment.returns))
    console.print(f"returns: {got}")


def _show(environment: Environment, world: World, console: Console, pause: float) -> None:
    """Draw each turn in the terminal, with a pause after it."""
    with Live(console=console, auto_refresh=False) as live:

        def show() -> None:
            live.update(_view(environment, world), refresh=True)
            time.sleep(pause)

        environment.on_turn = show
        live.update(_view(environment, world), refresh=True)
        _play(environment)


def _picture(world: AnyWorld) -> Image:
    from PIL import Image

    if isinstance(world, World):
        return frame(world)
    assert isinstance(world, PettingZooWorld)  # one copy is never split
    return Image.fromarray(world.render())


def _play(environment: Environment) -> None:
    """One episode."""
    try:
        for _ in range(environment.world.max_turns):
            environment.take_turn()
            if environment.world.over[0]:
                break
    except KeyboardInterrupt:
        pass  # the viewer has seen enough


def _view(environment: Environment, world: World) -> Text:
    returns = "  ".join(f"{i}: {value:.1f}" for i, value in enumerate(environment.returns))
    text = colored_text(world)
    text.append(f"turn {environment.turn} of {world.max_turns}   returns {returns}\n")
    text.append(legend_text(world)).append("\n")
    if any(isinstance(agent.model, HumanModel) for agent in environment.agents):
        text.append(keys_of(world) + "\n")
    return text


def keys_of(world: World) -> str:
    """The keys of a person who plays."""
    keys = [(KEYS[what].replace(" ", "space"), what) for what in world.actions if what in KEYS]
    return "keys: " + ", ".join(f"{key} {what}" for key, what in [*keys, ("q", "quit")])
