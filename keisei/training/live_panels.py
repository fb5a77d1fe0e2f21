"""The live view's panels, drawn to fit the terminal. `LiveView` shows them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.align import Align
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from keisei.training.progress import Progress

# The shares of wins, draws and losses in one evaluation.
Shares = tuple[float, float, float]
LEARNING = {
    "policy_loss": "policy loss",
    "value_loss": "value loss",
    "entropy": "entropy",
    "kl": "KL",
    "clip_fraction": "clip fraction",
    "explained_variance": "explained var.",
}
MAX_WIDTH = 160  # wider lines are hard to follow
TOP_HEIGHT = 5
BOARD_WIDTH, BOARD_HEIGHT = 41, 16  # of the panel; a hand may need all of the width
_WIN, _DRAW, _LOSS = "green", "yellow", "red"
_LABEL = "bright_black"


@dataclass
class Snapshot:
    """What there is to show of a run at one moment."""

    name: str
    phase: str
    progress: Progress
    elapsed: float
    left: float | None  # seconds until the end, if it can be told
    against: Mapping[str, Sequence[Shares]]
    history: Mapping[str, Sequence[float]]
    board: Text | None
    move: int = 0  # of the board's game


def draw(run: Snapshot, width: int, height: int) -> RenderableType:
    """The whole view for a terminal of this size; what does not fit is left out."""
    width = min(width, MAX_WIDTH)
    # A view as high as the terminal would scroll at the slightest disturbance. The last line stays
    # empty: there the cursor waits, and a Ctrl-C that is echoed at the end of a full line wraps.
    room = height - 2
    rows: list[RenderableType] = [progress_panel(run, width)]
    below = 2 + max(len(run.against), 1)
    left = room - TOP_HEIGHT - below
    if left >= 0:
        rows += middle_rows(run, width, left)
        rows.append(opponents_panel(run, width, below))
    return Group(*rows, Text())


def middle_rows(run: Snapshot, width: int, room: int) -> list[RenderableType]:
    """Self-play, learning and the board: side by side as far as the width goes."""
    with_board = run.board is not None and room >= BOARD_HEIGHT
    rest = width - BOARD_WIDTH
    if with_board and rest >= 96:
        left = rest // 2
        panels = (
            self_play_panel(run, left, BOARD_HEIGHT),
            learning_panel(run, rest - left, BOARD_HEIGHT),
        )
        return [_row(*panels, board_panel(run, BOARD_WIDTH))]
    if with_board and rest >= 58:
        stacked = Group(self_play_panel(run, rest, 8), learning_panel(run, rest, 8))
        return [_row(stacked, board_panel(run, BOARD_WIDTH))]
    rows: list[RenderableType] = []
    if width >= 70 and room >= 8:
        left = width // 2
        rows = [_row(self_play_panel(run, left, 8), learning_panel(run, width - left, 8))]
    elif width < 70:
        both = self_play_panel(run, width, 8), learning_panel(run, width, 8)
        rows += both[: room // 8]
    if with_board and width >= BOARD_WIDTH and room - 8 * len(rows) >= BOARD_HEIGHT:
        rows.insert(0, Align.center(board_panel(run, BOARD_WIDTH)))
    return rows


def progress_panel(run: Snapshot, width: int) -> Panel:
    """How far the run is, how fast, and how long it takes."""
    progress, now = run.progress, run.progress.metrics
    inner = width - 4
    share = f" {progress.fraction:6.1%}"
    bar = line_bar([(progress.fraction, "cyan")], inner - len(share)).append(share, "bold")
    facts = Table.grid(expand=True, padding=(0, 1, 0, 0))
    for _ in range(3):
        facts.add_column(ratio=1, no_wrap=True)
    facts.add_row(
        Text.assemble((f"{progress.steps:,}", "bold"), f" / {progress.total_timesteps:,} steps"),
        _fact("elapsed", clock(run.elapsed)),
        _fact("left", clock(run.left)),
    )
    facts.add_row(
        Text.assemble((number(now.get("steps_per_s")), "bold"), " steps/s"),
        _fact("collecting", f"{number(now.get('collect_steps_per_s'))}/s"),
        _fact("learning", f"{number(now.get('learn_steps_per_s'))}/s"),
    )
    title = Text.assemble(("形勢 keisei", "bold cyan"), f"  {run.name}  ", (run.phase, _LABEL))
    return _panel(title, Group(bar, facts), width, TOP_HEIGHT)


def self_play_panel(run: Snapshot, width: int, height: int) -> Panel:
    """Statistics of the games of self-play."""
    progress, now = run.progress, run.progress.metrics
    games = _fact("games", f"{progress.games:,}")
    kind = Text.assemble(
        _fact("decided", percent(now.get("decided"))),
        "   ",
        _fact("moves", number(now.get("game_length"))),
    )
    inner = width - 4
    lines = [games, kind] if inner < 44 else [Text.assemble(games, "   ", kind)]
    if height >= BOARD_HEIGHT:
        lines.append(Text())
    reasons = progress.reasons.most_common(height - 2 - len(lines))
    lines += [_reason(why, count / progress.games, inner) for why, count in reasons]
    if not reasons:
        lines.append(Text("no game has ended yet", _LABEL))
    return _panel(Text.assemble("self-play", _workers(now)), Group(*lines), width, height)


def _workers(now: Mapping[str, float]) -> Text:
    """How many workers play, and what they do with their time: who waits for whom."""
    if "workers" not in now:
        return Text()
    lag = f", lag {number(now['lag'])}" if now["lag"] else ""
    text = f"  {now['workers']:.0f} workers, {percent(now['workers_busy'])} busy{lag}"
    return Text(text, _LABEL)


def _reason(why: str, share: float, width: int) -> Text:
    drawn = why in ("repetition", "move limit")
    label, number = f"{why:<16}", f" {percent(share):>5}"
    bar = line_bar([(share, _DRAW if drawn else _WIN)], width - len(label) - len(number))
    return Text.assemble((label, _LABEL), bar, number)


def learning_panel(run: Snapshot, width: int, height: int) -> Panel:
    """The numbers of PPO, each with its past."""
    now = run.progress.metrics
    label_width = max(map(len, LEARNING.values())) + 1
    lines = []
    for name, label in LEARNING.items():
        value = f"{number(now.get(name)):>8}  "
        past = sparkline(run.history.get(name, ()), width - 4 - label_width - len(value))
        lines.append(Text.assemble((f"{label:<{label_width}}", _LABEL), value, (past, "cyan")))
        if height >= 2 + 2 * len(LEARNING):
            lines.append(Text())
    return _panel("learning", Group(*lines), width, height)


def opponents_panel(run: Snapshot, width: int, height: int) -> Panel:
    """Wins, draws and losses of the newest evaluation, and how the wins grew."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(4):
        table.add_column(no_wrap=True)
    bar_width = max((width - 46) // 2, 4)
    for name, past in run.against.items():
        if not past:
            table.add_row(name, Text("no match yet", _LABEL))
            continue
        shares = [
            Text(f"{percent(share):>5} {kind}", color)
            for share, kind, color in zip(
                past[-1], ("won", "drawn", "lost"), (_WIN, _DRAW, _LOSS), strict=True
            )
        ]
        table.add_row(
            Text(name, "bold"),
            line_bar(zip(past[-1], (_WIN, _DRAW, _LOSS), strict=True), bar_width),
            Text(" ").join(shares),
            Text(sparkline([wins for wins, _, _ in past], bar_width - 6, 0.0, 1.0), _WIN),
        )
    return _panel("against", table, width, height)


def board_panel(run: Snapshot, width: int) -> Panel:
    """One of the games that are played now."""
    board = (run.board or Text()).copy()
    board.no_wrap, board.overflow = True, "ellipsis"
    return _panel(f"a game now, move {run.move}", Align.center(board), width, BOARD_HEIGHT)


# -- pieces ----------------------------------------------------------------------------------


def sparkline(
    values: Sequence[float], width: int, low: float | None = None, high: float | None = None
) -> str:
    """The newest `width` values as little bars; a gap where a value is not finite.

    >>> sparkline([0, 1, 2, 3, float("nan"), 7], 10)
    '▁▂▃▄ █'
    """
    newest = list(values)[-width:] if width > 0 else []
    finite = [value for value in newest if math.isfinite(value)]
    if not finite:
        return " " * len(newest)
    low = min(finite) if low is None else low
    high = max(finite) if high is None else high
    scale = 7 / (high - low) if high > low else 0.0
    return "".join(
        "▁▂▃▄▅▆▇█"[min(max(round((value - low) * scale), 0), 7)] if math.isfinite(value) else " "
        for value in newest
    )


def line_bar(parts: Iterable[tuple[float, str]], width: int) -> Text:
    """Shares of 1 as coloured parts of a line.

    >>> line_bar([(0.5, "green"), (0.25, "red")], 8).plain
    '━━━━━━──'
    """
    bar, total = Text(), 0.0
    for share, color in parts:
        total += share
        bar.append("━" * (round(total * width) - len(bar)), color)
    return bar.append("─" * (width - len(bar)), "grey30")


def number(value: float | None) -> str:
    """A number in few characters, with the digits that matter.

    >>> [number(value) for value in (12345.6, 143.21, 79.07, 3.14159, 0.012345, 0.00003, 0.0)]
    ['12,346', '143', '79.1', '3.14', '0.0123', '3.0e-05', '0']
    """
    if value is None or math.isnan(value):
        return "-"
    if value == 0:
        return "0"
    size = abs(value)
    for least, form in ((100, ",.0f"), (10, ".1f"), (1, ".2f"), (0.001, ".4f")):
        if size >= least:
            return format(value, form)
    return f"{value:.1e}"


def percent(share: float | None) -> str:
    """A share of 1 in percent. A half is rounded up, as the page does, not to the even number.

    >>> percent(197 / 200), percent(None)
    ('99%', '-')
    """
    return "-" if share is None or math.isnan(share) else f"{math.floor(100 * share + 0.5)}%"


def clock(seconds: float | None) -> str:
    """Hours, minutes and seconds.

    >>> clock(3723.4), clock(None)
    ('1:02:03', '-')
    """
    if seconds is None or not math.isfinite(seconds):
        return "-"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _fact(label: str, value: str) -> Text:
    return Text.assemble((f"{label} ", _LABEL), (value, "bold"))


def _panel(title: str | Text, body: RenderableType, width: int, height: int) -> Panel:
    return Panel(
        body, title=title, title_align="left", width=width, height=height, border_style="grey39"
    )


def _row(*panels: RenderableType) -> RenderableType:
    grid = Table.grid()
    grid.add_row(*panels)
    return grid
