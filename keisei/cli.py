"""The `keisei` command. Commands import what they need when they run, so that each starts fast."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Literal, Optional

import typer

from keisei import __version__, configs
from keisei.cli_common import USUAL_RUNS, JsonFile, Ray, Runs, file_option, readable_errors
from keisei.cli_worlds import worlds
from keisei.errors import KeiseiError
from keisei.models import SHIPPED

app = typer.Typer(
    help="Train agents by self-play, on every core and machine you have.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Precision = Annotated[
    Literal["float32", "bfloat16"], typer.Option(help="With bfloat16, float32 is measured, too.")
]
benchmark = typer.Typer(help="Measure speed on this machine; compare the ratios within one run.")
app.add_typer(benchmark, name="benchmark", no_args_is_help=True)
app.add_typer(worlds, name="worlds", no_args_is_help=True)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"keisei {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Keisei: Shogi by self-play, and worlds with many agents."""


@app.command()
def train(
    config: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--config",
            "-c",
            metavar="NAME|FILE",
            help=f"Settings: {', '.join(configs.NAMES)}, or your own YAML file.",
        ),
    ] = None,
    override: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--override", "-o", help="Change a setting: -o training.learning_rate=1e-4"),
    ] = None,
    name: Annotated[Optional[str], typer.Option(help="Name of the new run.")] = None,  # noqa: UP045
    resume: Annotated[
        Optional[str], typer.Option(help="Continue this run where it stopped.")  # noqa: UP045
    ] = None,
    trace: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Write a timeline of the learner and its workers for ui.perfetto.dev."),
    ] = None,
    ray: Ray = None,
    runs: Runs = None,
) -> None:
    """Train an agent by self-play; Ctrl-C saves and stops."""
    from keisei.training.start import train as start

    settings = override or []
    if ray:
        parallel = "training.parallel"
        settings = [f"{parallel}.backend=ray", f"{parallel}.ray_address={ray}", *settings]
    with readable_errors():
        start(config, settings, name=name, resume=resume, runs=runs, trace=trace)


@app.command("config")
def show_config() -> None:
    """Print all settings with their meanings and defaults."""
    from keisei.config_schema import describe

    typer.echo(describe())


@app.command()
def replay(
    file: Annotated[Path, typer.Argument(help="A game record: .kif .kifu .ki2 .csa .usi")],
    svg: Annotated[
        Optional[Path], typer.Option(help="Write a picture of every position to this folder.")  # noqa: UP045
    ] = None,
    move: Annotated[Optional[int], typer.Option(help="Start at this move.")] = None,  # noqa: UP045
    wait: Annotated[bool, typer.Option(help="Wait for a key after each move.")] = True,
) -> None:
    """Replay a game in the terminal move by move, or save it as SVG pictures."""
    from rich.console import Console

    from keisei.shogi.replay import run_replay

    with readable_errors():
        run_replay(file, svg, move, Console(), wait=wait)


@app.command()
def evaluate(
    first: Annotated[str, typer.Argument(help="random, greedy, RUN, FILE.pt, RUN,nodes=400, ...")],
    second: Annotated[
        str, typer.Argument(help="Likewise, or an engine: 'usi:COMMAND,go=depth 3'.")
    ],
    games: Annotated[
        int, typer.Option(help="Games to play; each opening is played with both colours.")
    ] = 100,
    seed: Annotated[
        int, typer.Option(help="Seed of the players and of the order of openings.")
    ] = 1,
    at_once: Annotated[int, typer.Option(help="Games played at the same time.")] = 32,
    sprt: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            help="Stop once it is clear whether the first is this many Elo (above 0) stronger."
        ),
    ] = None,
    save: Annotated[
        Optional[Path], typer.Option(help="Save the games in this folder.")  # noqa: UP045
    ] = None,
    form: Annotated[
        str, typer.Option("--format", help="Format of saved games: kif, kifu or csa.")
    ] = "kif",
    json: JsonFile = None,
    ray: Ray = None,
    runs: Runs = None,
) -> None:
    """Play a match between any two players: runs, networks with or without search, engines."""
    from keisei.evaluation import evaluate as match
    from keisei.evaluation.statistics import Sprt

    with readable_errors():
        test = Sprt(elo1=sprt) if sprt is not None else None
        settings = match.MatchSettings(games=games, seed=seed, at_once=at_once, sprt=test)
        match.evaluate(first, second, settings, save, form, json, ray, runs or USUAL_RUNS)


@app.command()
def rate(
    player: Annotated[str, typer.Argument(help="RUN, FILE.pt, RUN,nodes=400, RUN,seconds=1, ...")],
    width: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            help="Width of the 95 % interval in Elo; by default 80, or 120 with search.", min=1
        ),
    ] = None,
    minutes: Annotated[float, typer.Option(help="Play for at most this long.", min=0)] = 30.0,
    seed: Annotated[
        int, typer.Option(help="Seed of the players and of the order of openings.")
    ] = 1,
    json: JsonFile = None,
    ray: Ray = None,
    runs: Runs = None,
) -> None:
    """Rate a player in Elo on the yardstick: a network by itself and with search."""
    from keisei.evaluation.rate_report import run_rate

    with readable_errors():
        run_rate(player, width, minutes, seed, json, ray, runs=runs or USUAL_RUNS)


@app.command()
def ladder(
    run: Annotated[str, typer.Argument(help="A run: its name or folder.")],
    checkpoints: Annotated[int, typer.Option(help="Checkpoints of the run to rate.", min=1)] = 8,
    nodes: Annotated[
        Optional[list[int]],  # noqa: UP045
        typer.Option(help="Also rate them with this many search nodes per move."),
    ] = None,
    games: Annotated[int, typer.Option(help="Play at most this many games.", min=2)] = 5000,
    minutes: Annotated[float, typer.Option(help="Play for at most this long.", min=0)] = 10.0,
    watch: Annotated[
        bool,
        typer.Option(help="Keep rating new checkpoints while the run trains, at low priority."),
    ] = False,
    ray: Ray = None,
    runs: Runs = None,
    runs_dir: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(hidden=True, help="What --runs was called before."),
    ] = None,
) -> None:
    """Rate a run's checkpoints by Elo on the yardstick, where the random player is 0."""
    from keisei.evaluation.ladder import LadderSettings
    from keisei.evaluation.ladder_report import run_ladder

    with readable_errors():
        settings = LadderSettings(checkpoints, tuple(nodes or ()), games, minutes)
        run_ladder(run, runs or runs_dir or USUAL_RUNS, settings, watch, ray)


@app.command("play")
def play_in_terminal(
    network: Annotated[
        str, typer.Argument(help="RUN, FILE.pt, or the network that comes with Keisei.")
    ] = SHIPPED,
    nodes: Annotated[
        int, typer.Option(help="Search nodes per move; 0 plays the policy alone.", min=0)
    ] = 100,
    side: Annotated[str, typer.Option(help="Your side: black, white or either.")] = "black",
    start: Annotated[
        str, typer.Option(help="startpos, the name of a handicap, or an SFEN.")
    ] = "startpos",
    runs: Runs = None,
) -> None:
    """Play Shogi against a network in the terminal."""
    from rich.console import Console

    from keisei.play import play

    with readable_errors():
        play(network, nodes, side, start, Console(), runs or USUAL_RUNS)


@app.command()
def export(
    network: Annotated[str, typer.Argument(help="RUN (its newest checkpoint) or FILE.pt.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="NAME.pt or NAME.onnx to write.")],
    form: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--format",
            help="pt (half precision, for Keisei) or onnx; by default the file's ending.",
        ),
    ] = None,
    runs: Runs = None,
) -> None:
    """Save just the network: a small file to share and play against, or for other programs."""
    from keisei.trained import export_network, find_checkpoint

    with readable_errors():
        export_network(find_checkpoint(network, runs or USUAL_RUNS), output, form)
        typer.echo(f"{output}: {output.stat().st_size / 1e6:.1f} MB")


@app.command()
def calibrate(
    network: Annotated[str, typer.Argument(help="RUN (its newest checkpoint) or FILE.pt.")],
    games: Annotated[int, typer.Option(help="Games to play against itself.", min=2)] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the games.")] = 1,
    runs: Runs = None,
) -> None:
    """Find out what a network's values mean as chances to win, and store that with it."""
    from keisei.evaluation.calibration import calibrate as fit
    from keisei.trained import find_checkpoint

    with readable_errors():
        curve = fit(find_checkpoint(network, runs or USUAL_RUNS), games, seed)
        typer.echo("its own estimate -> what it scored")
        for chance in (50, 55, 60, 70, 80, 90):
            scored = 50 * (1 + curve.value(chance / 50 - 1))
            typer.echo(f"{chance:15} % -> {scored:.0f} %")


@app.command()
def usi(
    model: Annotated[str, typer.Option(help="A run (its newest checkpoint) or FILE.pt.")] = SHIPPED,
    nodes: Annotated[
        int, typer.Option(help="Search nodes per move; 0: as many as the clock allows.", min=0)
    ] = 0,
    runs: Runs = None,
) -> None:
    """Run as a USI engine for Shogi programs, on standard input and output."""
    from keisei.usi.engine import run_engine

    if runs and (runs / model).is_dir():
        model = str(runs / model)
    with readable_errors():
        run_engine(model, nodes)


@app.command()
def serve(
    runs: Runs = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; other machines need a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            help="Port, or the next free one after it; 0: any free port.", min=0, max=65535
        ),
    ] = 8000,
    allow_host: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(help="Also answer to this host name, for example behind a proxy."),
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open a browser.")] = True,
) -> None:
    """Play Shogi, watch runs and replay their games in a browser; Ctrl-C stops it."""
    from keisei.web.server import serve as run_server

    with readable_errors():
        run_server(runs, host, port, open_browser, tuple(allow_host or ()))


@benchmark.command("env")
def benchmark_env(json: JsonFile = None) -> None:
    """Steps/s of the Shogi environment on one core, against the bare rules library."""
    from keisei.benchmarks import env

    with readable_errors():
        env.run(json)


@benchmark.command("learn")
def benchmark_learn(
    preset: Annotated[str, typer.Option(help="tiny, small or full.")] = "tiny",
    precision: Precision = "float32",
    json: JsonFile = None,
) -> None:
    """PPO samples/s against the bare forward and backward pass of the same network."""
    from keisei.benchmarks import learn

    with readable_errors():
        learn.run(json, preset, precision=precision)


@benchmark.command("collect")
def benchmark_collect(
    preset: Annotated[str, typer.Option(help="tiny, small or full.")] = "tiny",
    backend: Annotated[
        Literal["process", "ray"], typer.Option(help="With ray, processes are measured, too.")
    ] = "process",
    algorithm: Annotated[
        Literal["ppo", "gumbel"], typer.Option(help="gumbel: self-play with search.")
    ] = "ppo",
    precision: Precision = "float32",
    json: JsonFile = None,
) -> None:
    """Steps/s of the workers against the bare network, one worker, and one game."""
    from keisei.benchmarks import collect, collect_ray

    with readable_errors():
        given = {"training.algorithm": algorithm, "training.precision": precision}
        usual = ("ppo", "float32")
        more = [f"{name}={value}" for name, value in given.items() if value not in usual]
        if backend == "process":
            collect.run(json, preset, more=more)
        elif more:
            raise KeiseiError("--backend ray can only be measured with ppo in float32")
        else:
            collect_ray.run(json, preset)


@benchmark.command("growth")
def benchmark_growth(
    json: JsonFile = None,
    plot: Annotated[
        Optional[Path],  # noqa: UP045
        file_option(help="Also draw the results as a PNG file."),
    ] = None,
) -> None:
    """How costs grow with games, workers, network and minibatch; takes about 6 minutes."""
    from keisei.benchmarks import growth

    with readable_errors():
        growth.run(json, plot)


@benchmark.command("worlds")
def benchmark_worlds(json: JsonFile = None) -> None:
    """Turns/s of many agents and copies at once, against one agent after another."""
    from keisei.benchmarks.worlds import run

    with readable_errors():
        run(json)


@benchmark.command("search")
def benchmark_search(
    preset: Annotated[str, typer.Option(help="tiny, small or full.")] = "tiny",
    precision: Precision = "float32",
    json: JsonFile = None,
) -> None:
    """Nodes/s of the tree search against the bare network."""
    from keisei.benchmarks import search

    with readable_errors():
        search.run(json, preset, precision=precision)


def main() -> None:
    """Run the command line."""
    logging.basicConfig(level=logging.WARNING, format="keisei: %(message)s")
    app()
