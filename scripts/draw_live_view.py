"""Draw the live view of a run as an SVG picture: `python scripts/draw_live_view.py RUN OUT.svg`."""

import html
import re
import sys
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console

from keisei.config_schema import load_config
from keisei.runs.checkpoint import CheckpointStore
from keisei.runs.metrics import MetricsReader
from keisei.runs.run import Run
from keisei.selfplay.shard import make_shard
from keisei.shogi.board_text import board_text
from keisei.training.live_panels import LEARNING, Snapshot, draw
from keisei.training.progress import Progress

WIDTH, HEIGHT = 130, 30


def view_of(run: Run) -> Snapshot:
    """What the live view showed when the run's newest checkpoint was written."""
    config = load_config(run.config_path)
    _, state = CheckpointStore(run.checkpoints_dir).latest()
    progress = Progress(config.training.total_timesteps)
    progress.load_state_dict(state["progress"])
    shard = make_shard(config, 0)
    for _ in range(75):  # a game that looks like one: the checkpoint of workers has none
        shard.games.step(shard.games.random_actions())
    game = shard.games.game(0)
    with MetricsReader(run.metrics_path) as metrics:
        history = {name: [value for _, value in metrics.series(name)] for name in LEARNING}
        scores = [
            [share for _, share in metrics.series(f"{kind} against random")]
            for kind in ("wins", "draws", "losses")
        ]
    return Snapshot(
        name=run.name,
        phase="training",
        progress=progress,
        elapsed=progress.seconds,
        left=0.0,
        against={"random": list(zip(*scores, strict=True))},
        history=history,
        board=board_text(game),
        move=len(game.moves),
    )


def on_the_grid(picture: str) -> str:
    """Put every character of a text with kanji into its column: rich takes them for narrow."""

    def place(text: re.Match[str]) -> str:
        before, left, middle, length, rest, content = text.groups()
        letters = html.unescape(content)
        if cell_len(letters) == len(letters):
            return text[0]
        width = float(length) / len(letters)
        columns = [cell_len(letters[:number]) for number in range(len(letters))]
        places = " ".join(f"{float(left) + column * width:g}" for column in columns)
        return f'{before}x="{places}"{middle}{rest}>{content}<'

    attributes = r'x="([\d.]+)"( y="[\d.]+") textLength="([\d.]+)"([^>]*)'
    return re.sub(rf"(<text [^>]*?){attributes}>([^<]*)<", place, picture)


def main() -> None:
    """Read the run, draw, save."""
    folder, out = sys.argv[1:]
    with Path("/dev/null").open("w") as nowhere:
        console = Console(width=WIDTH, height=HEIGHT, record=True, file=nowhere)
        console.print(draw(view_of(Run.open(folder, Path())), WIDTH, HEIGHT))
    picture = console.export_svg(title="keisei train")
    picture = re.sub(r"\s*@font-face \{.*?\}", "", picture, flags=re.DOTALL)  # from another host
    Path(out).write_text(on_the_grid(picture), encoding="utf-8")


if __name__ == "__main__":
    main()
