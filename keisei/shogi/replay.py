"""Look at a recorded game in the terminal, move by move, or as pictures."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console, Group
from rich.text import Text

from keisei.shogi.actions import Side
from keisei.shogi.board_text import board_text
from keisei.shogi.records import GameRecord, RecordError, read_record

_SIGNS: dict[Side, str] = {"black": "☗", "white": "☖"}


def run_replay(
    path: str | os.PathLike[str],
    svg_dir: str | os.PathLike[str] | None = None,
    move: int | None = None,
    console: Console | None = None,
    *,
    wait: bool = True,
) -> None:
    """Show the game in the file at `path`; with `svg_dir`, write pictures of it there instead.

    In a terminal, one position at a time from move number `move` on, as the user asks for them.
    Elsewhere, or without `wait`, all positions, or only the one after move number `move`.
    """
    console = console or Console()
    record = read_record(path)
    last = len(record.moves)
    if move is not None and not 0 <= move <= last:
        raise RecordError(f"there is no move {move} in {path}; it has moves 0 to {last}")
    if svg_dir is not None:
        files = write_svgs(record, svg_dir, move)
        console.print(f"{len(files)} pictures in {svg_dir}", highlight=False, soft_wrap=True)
    elif wait and console.is_terminal and console.is_interactive:
        _browse(record, move or 0, console)
    else:
        for number in range(last + 1) if move is None else [move]:
            console.print(position(record, number), "")


def position(record: GameRecord, number: int) -> Group:
    """The position after move `number`, with the move, the comment, and the outcome at the end."""
    last = len(record.moves)
    names = f"☗ {record.black or 'black'}  -  ☖ {record.white or 'white'}"
    lines: list[Text] = [Text(names, style="bold"), _move_line(record, number)]
    lines.append(board_text(record.game(number)))
    if comment := record.comments.get(number):
        lines.append(Text(comment, style="italic"))
    if number == last:
        ending = (record.ending or "").replace("_", " ").lower()
        lines.append(Text(str(record.outcome or ending or "no result"), style="bold"))
    return Group(*lines)


def _move_line(record: GameRecord, number: int) -> Text:
    if number == 0:
        return Text(f"start of {len(record.moves)} moves")
    before, usi = record.game(number - 1), record.moves[number - 1]
    return Text(f"{number}/{len(record.moves)}  {_SIGNS[before.turn]} {before.turn} {usi}")


def _browse(record: GameRecord, number: int, console: Console) -> None:
    """Enter: the next move; b: back; a number: go there; q: quit."""
    while True:
        console.clear()
        console.print(position(record, number))
        try:
            answer = console.input("[dim]Enter next, b back, a move's number, q quit:[/] ").strip()
        except (EOFError, KeyboardInterrupt):
            return
        if answer.lower().startswith("q"):
            return
        if answer.isdecimal():
            number = min(int(answer), len(record.moves))
        elif answer.lower().startswith("b"):
            number = max(number - 1, 0)
        else:
            number = min(number + 1, len(record.moves))


def write_svgs(
    record: GameRecord, folder: str | os.PathLike[str], move: int | None = None
) -> list[Path]:
    """Write a picture of each position (or of the one after move number `move`): `000.svg`, ..."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for number in range(len(record.moves) + 1) if move is None else [move]:
        files.append(folder / f"{number:03}.svg")
        files[-1].write_text(record.game(number).svg(), encoding="utf-8")
    return files
