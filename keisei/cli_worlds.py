"""The `keisei worlds` commands: thin, and quick to load like those of `keisei.cli`."""

from __future__ import annotations

import json as json_text
import os
from pathlib import Path
from typing import Annotated, Optional

import typer

from keisei import configs
from keisei.cli_common import USUAL_RUNS, JsonFile, Ray, Runs, file_option, readable_errors

worlds = typer.Typer(help="Worlds where many independent agents learn.")

Overrides = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--override", "-o", help="Change a setting: -o copies=64"),
]
Trust = Annotated[
    bool,
    typer.Option("--trust", help="Import the code that the run names as its world."),
]


@worlds.command("list")
def list_worlds() -> None:
    """List all worlds, with a line about each."""
    from keisei.worlds import WORLDS

    for name, world in WORLDS.items():
        typer.echo(f"{name:<18} {(world.__doc__ or '').strip().splitlines()[0]}")
    typer.echo("pettingzoo:MODULE  Any PettingZoo ParallelEnv")
    typer.echo("MODULE:CLASS       Your own world: a subclass of keisei.worlds.World")


@worlds.command()
def config(world: Annotated[str, typer.Argument(help="A world.")] = "treasure_hunt") -> None:
    """Print all settings, and a world's own, with their meanings and defaults."""
    from keisei.config_schema import describe
    from keisei.worlds.config import WorldRunConfig
    from keisei.worlds.registry import default_settings

    with readable_errors():
        own = describe(default_settings(world), indent=1)
    typer.echo(describe(WorldRunConfig(world=world)))
    typer.echo(f"# world_settings of {world}:\n{own}")


@worlds.command()
def train(
    world: Annotated[
        Optional[str], typer.Argument(help="The world; see `keisei worlds list`.")  # noqa: UP045
    ] = None,
    config: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--config",
            "-c",
            help=f"Settings: {', '.join(configs.WORLD_NAMES)}, or your own YAML file.",
        ),
    ] = None,
    override: Overrides = None,
    name: Annotated[Optional[str], typer.Option(help="Name of the new run.")] = None,  # noqa: UP045
    resume: Annotated[
        Optional[str], typer.Option(help="Continue this run where it stopped.")  # noqa: UP045
    ] = None,
    debug: Annotated[
        bool, typer.Option(help="Run one agent after another in one thread: easy to debug.")
    ] = False,
    trace: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Write a timeline of what each part does, for ui.perfetto.dev."),
    ] = None,
    ray: Ray = None,
    trust: Trust = False,
    runs: Runs = None,
) -> None:
    """Train all agents of a world, each with its own learner; Ctrl-C saves and stops."""
    from keisei.worlds.training import start_world_training

    debugging = ["parallel.enabled=false"] if debug else []
    cluster = ["parallel.backend=ray", f"parallel.ray_address={ray}"] if ray else []
    overrides = [*cluster, *(override or []), *debugging, *_in_folder(runs)]
    with readable_errors():
        start_world_training(world, config, overrides, name, resume, trace, trust)


@worlds.command()
def watch(
    run: Annotated[str, typer.Argument(help="A run: its name or folder.")],
    film: Annotated[
        Optional[Path],  # noqa: UP045
        file_option(
            "--film", "--gif", help="Save the episode as this .gif, or .mp4 (needs ffmpeg)."
        ),
    ] = None,
    human: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(help="Play this agent yourself; the keys are shown, q quits."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the episode.")] = 0,
    speed: Annotated[float, typer.Option(help="Turns per second.", min=0.1)] = 8.0,
    trust: Trust = False,
    runs: Runs = None,
) -> None:
    """Show an episode of a run's agents, live in the terminal or as a film."""
    from keisei.worlds.watch import watch as show

    with readable_errors():
        show(run, film, human, seed, speed, trust=trust, runs=runs or USUAL_RUNS)


@worlds.command()
def sweep(
    world: Annotated[str, typer.Argument(help="The world; see `keisei worlds list`.")],
    vary: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            help="A setting and the values to try: --vary double_dqn.learning_rate=1e-3,1e-4"
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(help="Runs per combination, each with its own seed.", min=1)
    ] = 3,
    override: Overrides = None,
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Prefix of the runs' names; by default sweep-WORLD."),
    ] = None,
    plot: Annotated[
        Path,
        file_option(help="Write the curves to this PNG."),
    ] = Path("sweep.png"),
    ray: Ray = None,
    json: JsonFile = None,
    runs: Runs = None,
) -> None:
    """Train one run per combination of settings and seed; run it again to continue."""
    from keisei.worlds.sweep import sweep as run_all

    overrides = [*(override or []), *_in_folder(runs)]
    with readable_errors():
        run_all(world, vary or [], seeds, overrides, name, ray, json, plot)


def _in_folder(runs: Path | None) -> list[str]:
    """The setting that stands for --runs; the dot keeps a name such as 2026 from being a number."""
    return [] if runs is None else [f"runs_dir={json_text.dumps(os.path.join('.', runs))}"]


@worlds.command()
def schelling(
    world: Annotated[str, typer.Argument(help="The world; see `keisei worlds list`.")],
    plot: Annotated[
        Path,
        file_option(help="Write the diagram to this PNG."),
    ] = Path("schelling.png"),
    epochs: Annotated[
        int, typer.Option(help="Episodes per copy for each number of cooperators.", min=1)
    ] = 4,
    override: Overrides = None,
) -> None:
    """Draw a world's Schelling diagram: is it a social dilemma?"""
    from keisei.worlds.schelling import schelling as draw

    with readable_errors():
        draw(world, override or [], plot, epochs)


@worlds.command()
def evaluate(
    runs_to_play: Annotated[
        list[str],
        typer.Argument(help="Runs of one world: their names or folders.", metavar="RUN..."),
    ],
    episodes: Annotated[int, typer.Option(help="Episodes of each match.", min=1)] = 32,
    seed: Annotated[int, typer.Option(help="Seed of the episodes.")] = 0,
    plot: Annotated[
        Path,
        file_option(help="Write the matrix to this PNG."),
    ] = Path("cross_play.png"),
    json: JsonFile = None,
    trust: Trust = False,
    runs: Runs = None,
) -> None:
    """Let the newest agents of several runs play with each other: a cross-play matrix."""
    from keisei.worlds.cross_play import evaluate as play

    with readable_errors():
        play(runs_to_play, episodes, seed, plot, json, trust, runs or USUAL_RUNS)
