"""The `keisei` command. Commands import what they need when they run, so that each starts fast."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Optional

import typer

from keisei import __version__
from keisei.errors import KeiseiError

app = typer.Typer(
    help="Train agents that play, by self-play, with every core and machine you have.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
benchmark = typer.Typer(help="Measure this machine; figures are ratios within one run.")
app.add_typer(benchmark, name="benchmark", no_args_is_help=True)

JsonFile = Annotated[
    Optional[Path], typer.Option("--json", help="Write the figures to this file.")  # noqa: UP045
]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"keisei {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    """Keisei: Shogi by self-play, and worlds of many agents."""


@app.command()
def train(
    config: Annotated[
        Optional[Path], typer.Option("--config", "-c", help="Settings as YAML; see configs/.")  # noqa: UP045
    ] = None,
    override: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--override", "-o", help="A setting: -o training.learning_rate=1e-4"),
    ] = None,
    name: Annotated[Optional[str], typer.Option(help="Name of the new run.")] = None,  # noqa: UP045
    resume: Annotated[
        Optional[str], typer.Option(help="Go on with this run where it stopped.")  # noqa: UP045
    ] = None,
) -> None:
    """Train an agent by self-play; Ctrl-C saves and stops."""
    from keisei.training.start import start_training

    with readable_errors():
        start_training(config, override or [], name, resume)


@app.command("config")
def show_config() -> None:
    """Print all settings with their defaults and what they mean."""
    from keisei.config_schema import describe

    typer.echo(describe())


@app.command()
def replay(
    file: Annotated[Path, typer.Argument(help="A game: .kif .kifu .ki2 .csa .usi")],
    svg: Annotated[
        Optional[Path], typer.Option(help="Write a picture of every position to this folder.")  # noqa: UP045
    ] = None,
    move: Annotated[Optional[int], typer.Option(help="Start at this move.")] = None,  # noqa: UP045
    wait: Annotated[bool, typer.Option(help="Wait for a key after each move.")] = True,
) -> None:
    """Show a game in the terminal move by move, or as SVG pictures."""
    from rich.console import Console

    from keisei.shogi.replay import run_replay

    with readable_errors():
        run_replay(file, svg, move, Console(), wait=wait)


@app.command()
def usi(
    model: Annotated[str, typer.Option(help="A checkpoint file, or a run: its newest.")] = "",
    nodes: Annotated[int, typer.Option(help="Visits a move; 0: as time allows.", min=0)] = 0,
) -> None:
    """Be a USI engine for Shogi programs (on standard input and output)."""
    from keisei.usi.engine import run_engine

    with readable_errors():
        run_engine(model, nodes)


@contextlib.contextmanager
def readable_errors() -> Iterator[None]:
    """Errors that a user can mend are one line on stderr and exit code 2, not a traceback."""
    try:
        yield
    except (KeiseiError, OSError) as error:
        typer.secho(f"keisei: {error}", fg=typer.colors.RED, err=True)
        raise typer.Exit(2) from None


@benchmark.command("env")
def benchmark_env(json: JsonFile = None) -> None:
    """Steps/s of the Shogi environment on one core, beside the bare rules library."""
    from keisei.benchmarks import env

    with readable_errors():
        env.run(json)


@benchmark.command("learn")
def benchmark_learn(
    preset: Annotated[str, typer.Option(help="tiny, small or full.")] = "tiny",
    json: JsonFile = None,
) -> None:
    """PPO samples/s beside the bare forward and backward pass of the same network."""
    from keisei.benchmarks import learn

    with readable_errors():
        learn.run(json, preset)


@benchmark.command("collect")
def benchmark_collect(
    preset: Annotated[str, typer.Option(help="tiny, small or full.")] = "tiny",
    json: JsonFile = None,
) -> None:
    """Steps/s of worker processes beside the bare network, one worker, and one game."""
    from keisei.benchmarks import collect

    with readable_errors():
        collect.run(json, preset)


@benchmark.command("search")
def benchmark_search(
    preset: Annotated[str, typer.Option(help="tiny, small or full.")] = "tiny",
    json: JsonFile = None,
) -> None:
    """Nodes/s of the tree search beside the bare network."""
    from keisei.benchmarks import search

    with readable_errors():
        search.run(json, preset)


def main() -> None:
    """Run the command line."""
    logging.basicConfig(level=logging.WARNING, format="keisei: %(message)s")
    app()
