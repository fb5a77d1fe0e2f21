"""What the commands have in common: options, and errors that a user can read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from keisei.errors import KeiseiError


def _in_a_folder(file: Path | None) -> Path | None:
    if file is not None and not file.absolute().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {file.parent}")
    return file


def file_option(*names: str, help: str) -> Any:
    """A file to write; what could not be written is refused now, before hours of work for it."""
    return typer.Option(*names, help=help, dir_okay=False, callback=_in_a_folder)


JsonFile = Annotated[
    Optional[Path],  # noqa: UP045
    file_option("--json", help="Also write the results to this file."),
]
Ray = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        metavar="auto|HOST:PORT",
        help="Use this Ray cluster; auto: the one of `ray start`, or else just this machine.",
    ),
]
Runs = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--runs", metavar="DIR", help="The folder with all runs; by default ./runs."),
]
USUAL_RUNS = Path("runs")


@contextlib.contextmanager
def readable_errors() -> Iterator[None]:
    """Show errors that a user can fix as one line on stderr with exit code 2, no traceback."""
    try:
        yield
    except (KeiseiError, OSError) as error:
        said = str(error)
        if isinstance(error, OSError) and error.filename is not None:  # without Python's [Errno 2]
            said = f"{error.filename}: {error.strerror}"
        typer.secho(f"keisei: {said}", fg=typer.colors.RED, err=True)
        raise typer.Exit(2) from None
