"""The `keisei worlds` commands; thin, and quick to load, as those of `keisei.cli`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

worlds = typer.Typer(help="Many independent agents that learn in one world.")

Overrides = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--override", "-o", help="A setting: -o copies=64"),
]
Ray = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        metavar="auto|HOST:PORT",
        help="Use this Ray cluster; auto: the one that runs here, else one of this machine alone.",
    ),
]


@worlds.command("list")
def list_worlds() -> None:
    """Name all worlds, with what they are about."""
    from keisei.worlds import WORLDS

    for name, world in WORLDS.items():
        typer.echo(f"{name:<18} {(world.__doc__ or '').strip().splitlines()[0]}")
    typer.echo("pettingzoo:MODULE  Any PettingZoo ParallelEnv with discrete actions")
    typer.echo("MODULE:CLASS       A world of your own: a subclass of keisei.worlds.World")


@worlds.command()
def config(world: Annotated[str, typer.Argument(help="A world.")] = "treasure_hunt") -> None:
    """Print all settings, and those of a world, with their defaults and what they mean."""
    from keisei.cli import readable_errors
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
        Optional[str], typer.Argument(help="The world; `keisei worlds list` names them.")  # noqa: UP045
    ] = None,
    config: Annotated[
        Optional[Path], typer.Option("--config", "-c", help="Settings as YAML.")  # noqa: UP045
    ] = None,
    override: Overrides = None,
    name: Annotated[Optional[str], typer.Option(help="Name of the new run.")] = None,  # noqa: UP045
    resume: Annotated[
        Optional[str], typer.Option(help="Go on with this run where it stopped.")  # noqa: UP045
    ] = None,
    debug: Annotated[
        bool, typer.Option(help="One agent after another in one thread: easy to follow.")
    ] = False,
    trace: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Write who did what when, for https://ui.perfetto.dev."),
    ] = None,
) -> None:
    """Train all agents of a world, each by itself; Ctrl-C saves and stops."""
    from keisei.cli import readable_errors
    from keisei.worlds.training import start_world_training

    overrides = [*(override or []), *(["parallel.enabled=false"] if debug else [])]
    with readable_errors():
        start_world_training(world, config, overrides, name, resume, trace)


@worlds.command()
def watch(
    run: Annotated[str, typer.Argument(help="A run's name or folder.")],
    film: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--film", "--gif", help="Write the episode to this .gif, or .mp4 (if ffmpeg is there)."
        ),
    ] = None,
    human: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(help="Play this agent yourself: w a s d, space, e, f; q ends."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Another episode.")] = 0,
    speed: Annotated[float, typer.Option(help="Turns per second.", min=0.1)] = 8.0,
) -> None:
    """Show an episode of a run's agents: live in the terminal, or as a film."""
    from keisei.cli import readable_errors
    from keisei.worlds.watch import watch as show

    with readable_errors():
        show(run, film, human, seed, speed)


@worlds.command()
def sweep(
    world: Annotated[str, typer.Argument(help="The world; `keisei worlds list` names them.")],
    vary: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(help="A setting and its values: --vary double_dqn.learning_rate=1e-3,1e-4"),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each combination.", min=1)] = 3,
    override: Overrides = None,
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="What the names of the runs begin with; sweep-WORLD if not given."),
    ] = None,
    ray: Ray = None,
    json: Annotated[
        Optional[Path], typer.Option("--json", help="Write the results to this file.")  # noqa: UP045
    ] = None,
) -> None:
    """Train a run for every combination of settings and seed; again: goes on where it was."""
    from keisei.cli import readable_errors
    from keisei.worlds.sweep import sweep as run_all

    with readable_errors():
        run_all(world, vary or [], seeds, override or [], name, ray, json)
