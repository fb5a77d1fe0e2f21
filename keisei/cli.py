"""The `keisei` command. Commands import what they need when they run, so that each starts fast."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Optional

import typer

from keisei import __version__
from keisei.cli_worlds import worlds
from keisei.errors import KeiseiError
from keisei.models import SHIPPED

app = typer.Typer(
    help="Train agents that play, by self-play, with every core and machine you have.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
benchmark = typer.Typer(help="Measure this machine; figures are ratios within one run.")
app.add_typer(benchmark, name="benchmark", no_args_is_help=True)
app.add_typer(worlds, name="worlds", no_args_is_help=True)

JsonFile = Annotated[
    Optional[Path], typer.Option("--json", help="Write the figures to this file.")  # noqa: UP045
]

Ray = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(metavar="auto|HOST:PORT", help="Play on this Ray cluster: docs/cluster.md."),
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
    trace: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Write a timeline of learner and workers, for ui.perfetto.dev."),
    ] = None,
    ray: Ray = None,
) -> None:
    """Train an agent by self-play; Ctrl-C saves and stops."""
    from keisei.training.start import start_training

    settings = override or []
    if ray:
        parallel = "training.parallel"
        settings = [f"{parallel}.backend=ray", f"{parallel}.ray_address={ray}", *settings]
    with readable_errors():
        start_training(config, settings, name, resume, trace)


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
def evaluate(
    first: Annotated[str, typer.Argument(help="random, greedy, RUN, FILE.pt, RUN,nodes=400, ...")],
    second: Annotated[str, typer.Argument(help="Or an engine: 'usi:COMMAND,go=depth 3'.")],
    games: Annotated[int, typer.Option(help="Games; each opening with both colours.")] = 100,
    seed: Annotated[int, typer.Option(help="Of the players and the order of openings.")] = 1,
    at_once: Annotated[int, typer.Option(help="Games side by side.")] = 32,
    sprt: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            help="Stop when it is clear that the first is this many Elo (above 0) stronger, or not."
        ),
    ] = None,
    save: Annotated[
        Optional[Path], typer.Option(help="Write the games to this folder.")  # noqa: UP045
    ] = None,
    form: Annotated[str, typer.Option("--format", help="Of the games: kif, kifu or csa.")] = "kif",
    json: JsonFile = None,
    ray: Ray = None,
) -> None:
    """Play a match between any two players: docs/strength.md names them all."""
    from keisei.evaluation import evaluate as match
    from keisei.evaluation.statistics import Sprt

    with readable_errors():
        test = Sprt(elo1=sprt) if sprt is not None else None
        settings = match.MatchSettings(games=games, seed=seed, at_once=at_once, sprt=test)
        match.evaluate(first, second, settings, save, form, json, ray)


@app.command()
def rate(
    player: Annotated[str, typer.Argument(help="RUN, FILE.pt, RUN,nodes=400, RUN,seconds=1, ...")],
    width: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(help="Of the 95 % interval: 80 if not given, 120 with search.", min=1),
    ] = None,
    minutes: Annotated[float, typer.Option(help="To play at most.", min=0)] = 30.0,
    seed: Annotated[int, typer.Option(help="Of the players and the order of openings.")] = 1,
    json: JsonFile = None,
    ray: Ray = None,
) -> None:
    """Say how strong a player is, in Elo on the yardstick; a network alone and with search."""
    from keisei.evaluation.rate_report import run_rate

    with readable_errors():
        run_rate(player, width, minutes, seed, json, ray)


@app.command()
def ladder(
    run: Annotated[str, typer.Argument(help="A run, by name or folder.")],
    checkpoints: Annotated[int, typer.Option(help="How many of the run's to rate.", min=1)] = 8,
    nodes: Annotated[
        Optional[list[int]],  # noqa: UP045
        typer.Option(help="Rate the newest one with a search of so many nodes, too."),
    ] = None,
    games: Annotated[int, typer.Option(help="To play at most.", min=2)] = 5000,
    minutes: Annotated[float, typer.Option(help="To play at most.", min=0)] = 10.0,
    watch: Annotated[
        bool, typer.Option(help="Beside a training, at low priority: rate what comes new.")
    ] = False,
    runs_dir: Annotated[Path, typer.Option(help="Folder of all runs.")] = Path("runs"),
    ray: Ray = None,
) -> None:
    """Rate a run's checkpoints by Elo on the yardstick, where the random player is 0."""
    from keisei.evaluation.ladder import LadderSettings
    from keisei.evaluation.ladder_report import run_ladder

    with readable_errors():
        settings = LadderSettings(checkpoints, tuple(nodes or ()), games, minutes)
        run_ladder(run, runs_dir, settings, watch, ray)


@app.command("play")
def play_in_terminal(
    network: Annotated[
        str, typer.Argument(help="RUN, FILE.pt, or the network that comes with Keisei.")
    ] = SHIPPED,
    nodes: Annotated[int, typer.Option(help="Of search a move; 0: its first idea.", min=0)] = 100,
    side: Annotated[str, typer.Option(help="Yours: black, white or either.")] = "black",
    start: Annotated[
        str, typer.Option(help="startpos, a handicap's name, or a SFEN.")
    ] = "startpos",
) -> None:
    """Play Shogi against a network, in the terminal."""
    from rich.console import Console

    from keisei.play import play

    with readable_errors():
        play(network, nodes, side, start, Console())


@app.command()
def export(
    network: Annotated[str, typer.Argument(help="RUN (its newest checkpoint) or FILE.pt.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write: NAME.pt.")],
) -> None:
    """Write a network alone, in half precision: a small file to share and to play against."""
    from keisei.training.trained import export_network, find_checkpoint

    with readable_errors():
        export_network(find_checkpoint(network), output)
        typer.echo(f"{output}: {output.stat().st_size / 1e6:.1f} MB")


@app.command()
def usi(
    model: Annotated[str, typer.Option(help="A checkpoint file, or a run: its newest.")] = SHIPPED,
    nodes: Annotated[int, typer.Option(help="Visits a move; 0: as time allows.", min=0)] = 0,
) -> None:
    """Be a USI engine for Shogi programs (on standard input and output)."""
    from keisei.usi.engine import run_engine

    with readable_errors():
        run_engine(model, nodes)


@app.command()
def serve(
    runs: Annotated[
        Optional[Path], typer.Option(help="Folder of all runs; runs, if not given.")  # noqa: UP045
    ] = None,
    host: Annotated[
        str, typer.Option(help="Where to listen; beyond this machine, a token is asked for.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: any that is free.", min=0, max=65535)] = 8000,
    allow_host: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(help="Another name that this server is reached by, as behind a proxy."),
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="In a browser.")] = True,
) -> None:
    """Watch runs, replay games and play against them, in a browser; Ctrl-C ends it."""
    from keisei.web.server import serve as run_server

    with readable_errors():
        run_server(runs, host, port, open_browser, tuple(allow_host or ()))


@contextlib.contextmanager
def readable_errors() -> Iterator[None]:
    """Errors that a user can mend are one line on stderr and exit code 2, not a traceback."""
    try:
        yield
    except (KeiseiError, OSError) as error:
        said = str(error)
        if isinstance(error, OSError) and error.filename is not None:  # without Python's [Errno 2]
            said = f"{error.filename}: {error.strerror}"
        typer.secho(f"keisei: {said}", fg=typer.colors.RED, err=True)
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
    backend: Annotated[str, typer.Option(help="process, or ray beside process.")] = "process",
    json: JsonFile = None,
) -> None:
    """Steps/s of workers beside the bare network, one worker, and one game."""
    from keisei.benchmarks import collect, collect_ray

    with readable_errors():
        if backend == "ray":
            collect_ray.run(json, preset)
        elif backend == "process":
            collect.run(json, preset)
        else:
            raise KeiseiError(f"--backend is process or ray, not {backend!r}")


@benchmark.command("growth")
def benchmark_growth(
    json: JsonFile = None,
    plot: Annotated[
        Optional[Path], typer.Option(help="Draw the figures as a PNG to this file.")  # noqa: UP045
    ] = None,
) -> None:
    """How costs grow with games, workers, network and minibatch; takes about 6 minutes."""
    from keisei.benchmarks import growth

    with readable_errors():
        growth.run(json, plot)


@benchmark.command("worlds")
def benchmark_worlds(json: JsonFile = None) -> None:
    """Turns/s of many agents and copies at once, beside one agent after another."""
    from keisei.benchmarks.worlds import run

    with readable_errors():
        run(json)


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
    # Before PyTorch is loaded: its threads wait for each other a moment awake, then asleep. By
    # default they stay awake much longer, and starve each other beside a busy neighbour; asleep
    # at once, they take a fifth longer to learn.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    logging.basicConfig(level=logging.WARNING, format="keisei: %(message)s")
    app()
