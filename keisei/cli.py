"""The `keisei` command. Commands import what they need when they run, so that each starts fast."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from keisei import __version__

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


@benchmark.command("env")
def benchmark_env(json: JsonFile = None) -> None:
    """Steps/s of the Shogi environment on one core, beside the bare rules library."""
    from keisei.benchmarks import env

    env.run(json)


def main() -> None:
    """Run the command line."""
    app()
