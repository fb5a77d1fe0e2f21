"""What a person sees while training, in a pipe and in terminals of several sizes."""

import fcntl
import io
import math
import os
import pty
import re
import signal
import struct
import sys
import termios
from collections import Counter
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from keisei.config_schema import DisplayConfig, load_config
from keisei.evaluation.ladder import Entry, Ladder
from keisei.evaluation.pairs import Pentanomial
from keisei.runs.checkpoint import CheckpointStore
from keisei.runs.metrics import MetricsReader, MetricsStore
from keisei.runs.run import Run
from keisei.settings import to_yaml
from keisei.shogi import ShogiGame
from keisei.shogi.board_text import board_text
from keisei.training.display import HISTORY, LiveView, PlainLines, make_display
from keisei.training.learning_curve import LearningCurve, draw_learning_curve
from keisei.training.live_panels import LEARNING, Snapshot, draw
from keisei.training.progress import Progress
from keisei.training.trainer import Trainer
from tests.processes import Process

TRAIN = """
import logging, sys
from pathlib import Path
from keisei.config_schema import load_config
from keisei.settings import to_yaml
from keisei.training.callbacks import Callback, RecordMetrics
from keisei.training.display import make_display
from keisei.training.learning_curve import LearningCurve
from keisei.runs.run import Run
from keisei.training.trainer import Trainer
from keisei.training.training_loop_manager import TrainingLoopManager

class Warn(Callback):
    def on_update(self, trainer, finished):
        logging.warning("warned after update %d", trainer.progress.updates)

logging.basicConfig()
root, *overrides = sys.argv[1:]
config = load_config(overrides=overrides)
run = Run.create(Path(root), "tiny", to_yaml(config))
callbacks = [RecordMetrics(), LearningCurve(), Warn(), make_display(config.display)]
TrainingLoopManager(Trainer(config, run, callbacks)).run()
"""
TINY = [
    "training.total_timesteps=1024",
    "training.parallel.enabled=false",
    "training.parallel.num_workers=1",
    "training.parallel.num_envs_per_worker=4",
    "training.parallel.rollout_length=64",
    "training.minibatch_size=64",
    "model.depth=0",
    "model.width=8",
    "env.move_limit=40",
    "evaluation.games=4",
    "evaluation.final_games=4",
    "evaluation.interval=512",
    "logging.tensorboard=false",
    "display.refresh_per_second=20",
]
UPDATES, EVALUATIONS = 4, 3  # evaluations at 0, 512 and the final one


def start(root: Path, *overrides: str, **streams: object) -> Process:
    environment = {**os.environ, "TERM": "xterm-256color"}
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        environment.pop(name, None)
    script = root / "train.py"
    script.write_text(TRAIN)
    return Process([root, *TINY, *overrides], script, env=environment, **streams)


def train_in_terminal(root: Path, columns: int, rows: int, *overrides: str) -> tuple[int, str]:
    """Train with a terminal of that size for standard input and output; what it was sent."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = start(root, *overrides, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    received = b""
    try:
        while data := os.read(ours, 65536):
            received += data
    except OSError:  # how Linux says that the other side has closed
        pass
    os.close(ours)
    return process.wait(60), received.decode()


def screen(received: str) -> list[str]:
    """What a terminal without end shows after it was sent this. It knows no more than rich uses."""
    lines, row = [""], 0
    for part in re.findall(r"\x1b\[[?\d;]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", received):
        if part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part == "\x1b[1A":
            row -= 1
        elif part == "\x1b[2K":
            lines[row] = ""
        elif part[0] not in "\x1b\r":
            lines[row] += part
    return lines


def next_steps(folder: Path) -> list[str]:
    """What a run says at its end, with what was given to it here."""
    return [
        "What next:",
        f"  see it, and play it: keisei serve --runs {folder.parent}",
        f"  in the terminal:     keisei play {folder}",
        f"  how strong it is:    keisei evaluate {folder} shipped",
        f"  train on:            keisei train --resume {folder} -o training.total_timesteps=2048",
    ]


# In a pipe


def test_a_pipe_gets_a_line_per_update_evaluation_and_checkpoint_and_a_summary(tmp_path):
    out, err = start(tmp_path).communicate(timeout=200)
    lines = out.splitlines()
    assert lines[0] == "run tiny starts at step 0, in float32"
    updates = [line for line in lines if line.startswith("step ")]
    assert len(updates) == UPDATES
    number = r"-?[\d.,]+(?:e-\d+)?"
    assert re.fullmatch(
        rf"step 1,024/1,024 100\.0% \| {number} steps/s \| \d+ games \| decided \d+% \| "
        rf"length {number} \| policy {number} \| value {number} \| entropy {number} \| "
        rf"kl {number} \| clip \d+% \| wins against random \d+%",
        updates[-1],
    )
    evaluations = [line for line in lines if line.startswith("evaluation at step ")]
    assert len(evaluations) == EVALUATIONS
    assert re.search(r"\d wins, \d draws, \d losses", evaluations[0])
    assert re.search(r"^checkpoint step_000000001024\.pt saved in \d\.\d\d s$", out, re.MULTILINE)
    run = Run.open("tiny", tmp_path)
    summary = dict(re.split(r": +", line, maxsplit=1) for line in lines[-14:-5])
    assert summary["finished"] == "tiny"
    assert summary["steps"] == f"1,024 in {UPDATES} updates"
    assert re.fullmatch(r"\d+% won, \d+% drawn, \d+% lost", summary["against random"])
    assert summary["run"] == str(run.folder)
    assert Path(summary["checkpoint"]).is_file()
    assert png_size(Path(summary["learning curve"])) == (1200, 800)
    assert lines[-5:] == next_steps(run.folder)
    assert out.isascii()
    assert "Traceback" not in err
    assert "could not be drawn" not in err


@pytest.mark.parametrize("live", ["always", "never"])
def test_who_trains_is_told_at_once_which_precision_auto_has_chosen(tmp_path, live):
    overrides = ["training.precision=auto", "training.total_timesteps=256", f"display.live={live}"]
    out, err = start(tmp_path, *overrides).communicate(timeout=200)
    told = re.match(r"run tiny starts at step 0, in (float32|bfloat16)$", screen(out)[0])
    assert told, err
    # Whoever goes on with the run goes on in this precision.
    _, state = CheckpointStore(tmp_path / "tiny/checkpoints").latest()
    assert f"precision: {told[1]}" in state["config"]


def test_a_reader_that_goes_away_does_not_stop_the_training(tmp_path):
    process = start(tmp_path)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(200) == 0
    assert "BrokenPipe" not in err
    assert (tmp_path / "tiny/checkpoints/step_000000001024.pt").is_file()


@pytest.mark.parametrize("live", ["always", "never"])
def test_who_stops_a_run_is_told_where_it_stands_and_how_to_go_on(tmp_path, live):
    process = start(tmp_path, f"display.live='{live}'", "training.total_timesteps=1000000")
    assert process.stderr is not None
    while "warned after update" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=200)
    assert process.returncode == 0
    told = re.search(
        rf"\nStopped at step ([\d,]+) of 1,000,000\. Everything is saved; continue with: "
        rf"keisei train --resume {tmp_path}/tiny\n\Z",
        "\n".join(screen(out)),
    )
    assert told
    step = int(told[1].replace(",", ""))
    assert step > 0
    assert (tmp_path / f"tiny/checkpoints/step_{step:012}.pt").is_file()


# In a terminal


def test_the_live_view_shows_a_game_that_a_worker_plays(tmp_path):
    # rsshogi's boards end the process when another thread than their own touches them.
    code, received = train_in_terminal(tmp_path, 100, 30, "training.parallel.enabled=true")
    assert code == 0
    assert re.search(r"a game now, move [1-9]", received)


@pytest.mark.parametrize(("columns", "rows"), [(100, 30), (80, 24)])
def test_a_terminal_gets_a_live_view_that_fits_and_ends_with_a_summary(tmp_path, columns, rows):
    code, received = train_in_terminal(tmp_path, columns, rows)
    assert code == 0
    assert "Traceback" not in received
    shown = screen(received)
    commands = shown.index("What next:")  # these are in one piece, for the mouse
    assert max(map(cell_len, shown[:commands])) <= columns
    assert [line for line in shown[commands:] if line] == next_steps(tmp_path / "tiny")
    redraws = re.findall(r"(?:\x1b\[1A\x1b\[2K)+", received)
    assert len(redraws) > UPDATES  # the view was alive while training went on
    assert max(redraw.count("\x1b[1A") for redraw in redraws) < rows
    # The cursor waits on an empty line, where the echo of a Ctrl-C does no harm.
    assert all(before == "\n" for before in re.findall(r"(.)\r\x1b\[2K", received, re.DOTALL))

    text = "\n".join(shown)
    assert text.count("形勢 keisei") == 1  # every earlier view was taken away
    top = next(row for row, line in enumerate(shown) if "形勢 keisei" in line)
    assert "tiny  finished" in shown[top]
    assert re.search(r"━━━ +100\.0%", shown[top + 1])
    for word in ("elapsed 0:0", "left 0:00:00", "steps/s", "collecting", "learning", "games"):
        assert word in text
    assert re.search(r"move limit +━+", text)
    assert all(re.search(rf"{label} +\S+", text) for label in LEARNING.values())
    assert re.search(r"random +[━─]+ +\d+% won +\d+% drawn +\d+% lost +[▁▂▃▄▅▆▇█]{3}", text)
    assert ("９ ８ ７ ６ ５ ４ ３ ２ １" in text) == (columns >= 100)

    above = "\n".join(shown[:top])
    assert all(f"warned after update {n}" in above for n in range(1, UPDATES + 1))
    below = text[text.index("tiny has finished") :]
    assert all(word in below for word in ("1,024 in 4 updates", "learning curve", "checkpoint"))
    assert "tiny has finished" in "\n".join(shown[-rows:])
    assert received.rindex("\x1b[?25h") > received.rindex("\x1b[?25l")  # the cursor is back


def test_the_next_steps_are_commands_as_they_work_in_this_terminal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [".venv/bin/keisei", "train"])  # as `make train` starts it
    config = load_config(overrides=TINY)
    trainer = Trainer(config, Run.create(Path("runs"), "tiny", to_yaml(config)))
    for path, command in ((tmp_path, ".venv/bin/keisei"), (Path(sys.executable).parent, "keisei")):
        monkeypatch.setenv("PATH", str(path))
        _, *lines = PlainLines().next_steps(trainer)
        commands = [line.split(": ")[1].strip() for line in lines]
        assert commands[:2] == [f"{command} serve", f"{command} play tiny"]


def test_the_display_follows_the_setting():
    assert isinstance(make_display(DisplayConfig(live="always")), LiveView)
    assert isinstance(make_display(DisplayConfig(live="never")), PlainLines)
    assert isinstance(make_display(DisplayConfig(live="auto")), PlainLines)  # pytest has no tty


def test_the_curves_of_a_resumed_run_begin_where_the_run_began(tmp_path, capsys):
    config = load_config(overrides=TINY)
    run = Run.create(tmp_path, "tiny", to_yaml(config))
    with MetricsStore(run.metrics_path) as store:
        for step in range(HISTORY + 1):
            store.log(step, {"entropy": step, "wins against random": 0.5})
    trainer, view = Trainer(config, run), LiveView()
    view.on_start(trainer)
    view.on_close(trainer)
    assert list(view.history["entropy"]) == list(range(1, HISTORY + 1))
    assert list(view.history["kl"]) == []
    assert "aborted" in capsys.readouterr().out


def a_view(**changes: object) -> Snapshot:
    progress = Progress(123_456_789_012, steps=98_765_432_109, games=123_456_789)
    progress.reasons = Counter({"checkmate": 60_000_000, "perpetual check": 63_456_789})
    progress.metrics = dict.fromkeys([*LEARNING, "decided", "game_length"], -1.23456e-7)
    progress.metrics |= {"entropy": math.nan, "steps_per_s": 1_234_567.8, "value_loss": 1e12}
    history = {name: [math.nan, *range(300)] for name in LEARNING}
    against = {"random": [(0.25, 0.5, 0.25)] * 300, "greedy": []}
    board = board_text(ShogiGame())
    known = {"name": "a [bold]name[/] " * 9, "phase": "training", "progress": progress}
    known |= {"elapsed": 1e6, "left": math.inf, "against": against, "history": history}
    return Snapshot(**{**known, "board": board, "move": 512, **changes})


@pytest.mark.parametrize("height", [5, 8, 15, 24, 30, 50])
@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 140, 160, 250])
@pytest.mark.parametrize(
    "view", [a_view(), a_view(progress=Progress(1), against={}, history={}, board=None)]
)
def test_a_view_fits_every_terminal(view, width, height):
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=False)
    lines = console.render_lines(draw(view, width, height), console.options)
    assert len(lines) <= max(height - 1, 6)
    assert all(sum(cell_len(part.text) for part in line) <= width for line in lines)


# The learning curve


def png_size(path: Path) -> tuple[int, int]:
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert data[-8:-4] == b"IEND"
    return struct.unpack(">II", data[16:24])


@pytest.mark.parametrize("points", [0, 1, 2, 500])
def test_the_learning_curve_is_a_picture_whatever_was_measured(tmp_path, points):
    with MetricsStore(tmp_path / "metrics.sqlite") as store:
        for step in range(points):
            odd = math.nan if step % 3 == 0 else step / 500
            values = {"decided": odd, "entropy": math.inf, "kl": odd, "value_loss": odd}
            values |= {f"{kind} against random": 1 / 3 for kind in ("wins", "draws", "losses")}
            store.log(step * 1000, values | {"wins against greedy": odd})
    with MetricsReader(tmp_path / "metrics.sqlite") as reader:
        draw_learning_curve(reader, tmp_path / "curve.png", "a $name_ with \\ and 形勢")
    assert png_size(tmp_path / "curve.png") == (1200, 800)
    assert sorted(path.name for path in tmp_path.glob("*curve*")) == ["curve.png"]


def test_the_learning_curve_of_a_rated_run_has_its_elo_on_top(tmp_path):
    MetricsStore(tmp_path / "metrics.sqlite").close()
    ladder, curve = Ladder(), tmp_path / "curve.png"
    with MetricsReader(tmp_path / "metrics.sqlite") as reader:
        ladder.entries["step 5"] = Entry("step 5", "5.pt", steps=5, cpu_hours=0.1)
        draw_learning_curve(reader, curve, "not yet rated", ladder)
        assert png_size(curve) == (1200, 800)
        ladder.results["step 5", "random"] = Pentanomial.of_games(30, 0, 10)
        draw_learning_curve(reader, curve, "rated", ladder)
        assert png_size(curve) == (1200, 1166)


def test_a_run_with_a_broken_ladder_has_a_learning_curve(tmp_path, caplog):
    config = load_config(overrides=TINY)
    trainer = Trainer(config, Run.create(tmp_path, "a", to_yaml(config)))
    MetricsStore(trainer.run.metrics_path).close()
    trainer.run.ladder_path.write_text("[]")
    LearningCurve().on_end(trainer)
    assert png_size(trainer.run.learning_curve_path) == (1200, 800)
    assert "drawn without ratings" in caplog.text


def test_a_learning_curve_that_cannot_be_written_leaves_no_trace(tmp_path):
    MetricsStore(tmp_path / "metrics.sqlite").close()
    (tmp_path / "curve.png").mkdir()
    with (
        MetricsReader(tmp_path / "metrics.sqlite") as reader,
        pytest.raises(OSError, match=r"curve\.png"),
    ):
        draw_learning_curve(reader, tmp_path / "curve.png", "run")
    assert sorted(path.name for path in tmp_path.glob("*curve*")) == ["curve.png"]
