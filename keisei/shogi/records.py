"""Game records in files: KIF, KI2, CSA and USI, through rsshogi.

| suffix          | format                          | written in                               |
|-----------------|---------------------------------|------------------------------------------|
| `.kif`, `.kifu` | KIF                             | CP932, UTF-8                             |
| `.ki2`, `.ki2u` | KI2                             | CP932, UTF-8                             |
| `.csa`          | CSA 2.2                         | UTF-8 (and says so if not plain ASCII)   |
| `.usi`, `.sfen` | a `position ... moves ...` line | ASCII; no names, comments, resignations  |

All are read as UTF-8, with or without a byte order mark, and else as CP932: text in CP932 is
hardly ever valid UTF-8, while UTF-8 is often valid, and wrong, CP932. A record keeps the main line
and its comments; times, variations and other headers are left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rsshogi.record import GameResult, MoveEntry, Record, RecordMetadata, SpecialMoveEntry

from keisei.errors import KeiseiError
from keisei.files import replace_file
from keisei.shogi.actions import IllegalActionError, Side, read_usi
from keisei.shogi.ki2_moves import has_moves, ki2_moves
from keisei.shogi.rules import START_SFEN, Outcome, Reason, new_board
from keisei.shogi.shogi_game import ShogiGame
from keisei.shogi.vector_shogi import FinishedGame


class RecordError(KeiseiError, ValueError):
    """A game record that cannot be read or written; the message names the file and the line."""


@dataclass(frozen=True)
class GameRecord:
    """One game as a file keeps it; its moves are legal, or it cannot be made.

    >>> record = GameRecord(moves=("7g7f", "3c3d"), black="Habu", white="Moriuchi")
    >>> record.game().turn, record.outcome
    ('black', None)

    The start position's move number is always 1, since most formats cannot say another. `outcome`
    is what the record says; if it says nothing, what the rules say of the last position. `ending`
    is rsshogi's name of an ending that `Outcome` has no word for, such as
    "WHITE_WIN_BY_TIMEOUT". `comments` are by move number, 0 for those before the first move.
    """

    start_sfen: str = START_SFEN
    moves: tuple[str, ...] = ()
    black: str = ""
    white: str = ""
    outcome: Outcome | None = None
    ending: str | None = None
    comments: Mapping[int, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        board = new_board(self.start_sfen)
        start = " ".join([*board.to_sfen().split()[:3], "1"])
        object.__setattr__(self, "start_sfen", start)
        object.__setattr__(self, "moves", tuple(self.moves))
        for side in ("black", "white"):  # a line break in a name would be a line of the record
            name = re.sub(r"[\x00-\x1f\x7f\x85\u2028\u2029]+", " ", getattr(self, side)).strip()
            object.__setattr__(self, side, name)
        for number, usi in enumerate(self.moves, start=1):
            try:
                move = read_usi(usi)
            except IllegalActionError as error:
                raise RecordError(f"move {number}: {error}") from None
            if move not in board.legal_moves():
                raise RecordError(f"illegal move {number} ({usi}) in {board.to_sfen()}")
            board.apply_move(move)

    @classmethod
    def from_game(cls, game: ShogiGame, black: str = "", white: str = "") -> GameRecord:
        """The record of a game that was played here."""
        return cls(game.start_sfen, tuple(game.moves), black, white, game.outcome)

    @classmethod
    def from_finished(cls, game: FinishedGame, black: str = "", white: str = "") -> GameRecord:
        """The record of a game that `VectorShogi` has finished."""
        return cls(game.start_sfen, tuple(game.usi_moves()), black, white, game.outcome)

    def game(self, move: int | None = None) -> ShogiGame:
        """The game after `move` moves, or after all of them."""
        # Not by push_usi: people play on where our rules end a game, as after a missed declaration.
        return ShogiGame.from_moves(self.start_sfen, self.moves[:move], move_limit=None)


@dataclass(frozen=True)
class _Format:
    name: str
    parse: Callable[[str], Record]
    text: Callable[[Record], str]
    first_move: str  # what a line begins with when it is the first that has a move
    header: str  # what one of the lines begins with when there are no moves
    statement: str  # a part of a line that an error can be narrowed down to


_KANJI_HEADER = r"手合割|手数|[先後下上]手|まで|\s*\d+ (投了|中断)"
_KIF = _Format("KIF", Record.from_kif_str, Record.to_kif, r"\s*\d+\s+\S", _KANJI_HEADER, r".+")
_KI2 = _Format(
    "KI2",
    Record.from_ki2_str,
    Record.to_ki2,
    r"\s*([▲△☗☖▼▽]|[１-９][一二三四五六七八九])",
    _KANJI_HEADER,
    r"[▲△☗☖][^▲△☗☖]*",
)
_CSA = _Format(
    "CSA", Record.from_csa_str, Record.to_csa, r"[+-]\d", r"V\d|N[+-]|P[I1-9+-]|[+-]|%", r"[^,]+"
)
_USI = _Format(
    "USI",
    lambda text: Record.from_usi_position(text.strip(), allow_special_tokens=True),
    Record.to_usi_position,  # without special tokens: they are no USI, and engines refuse them
    r".",
    r".",
    r"(?<!\S)[1-9PLNSGBR]\S{3,4}(?!\S)",
)
_FORMATS = {
    ".kif": (_KIF, "cp932"),
    ".kifu": (_KIF, "utf-8"),
    ".ki2": (_KI2, "cp932"),
    ".ki2u": (_KI2, "utf-8"),
    ".csa": (_CSA, "utf-8"),
    ".usi": (_USI, "utf-8"),
    ".sfen": (_USI, "utf-8"),
}
SUFFIXES = tuple(_FORMATS)


def _format_of(path: Path) -> tuple[_Format, str]:
    if path.suffix.lower() not in _FORMATS:
        raise RecordError(
            f"{path}: the name of a game record must end in one of {', '.join(SUFFIXES)}"
        )
    return _FORMATS[path.suffix.lower()]


_SERVER_WORDS = {
    "TIME_UP": "%TIME_UP",
    "RESIGN": "%TORYO",
    "SENNICHITE": "%SENNICHITE",
    "ILLEGAL_MOVE": "%ILLEGAL_MOVE",
    "JISHOGI": "%JISHOGI",
    "MAX_MOVES": "%MAX_MOVES",
    "CHUDAN": "%CHUDAN",
}


# -- endings -------------------------------------------------------------------------------------

_TERMINALS: dict[Reason, tuple[str, str]] = {  # rsshogi's kind of ending, and its result
    "resignation": ("RESIGN", "{}_WIN"),
    "checkmate": ("MATE", "{}_WIN"),
    "no legal move": ("MATE", "{}_WIN"),
    "repetition": ("REPETITION_DRAW", "DRAW_BY_REPETITION"),
    "perpetual check": ("WIN_BY_ILLEGAL_MOVE", "{}_WIN_BY_ILLEGAL_MOVE"),
    "declaration": ("WIN_BY_DECLARATION", "{}_WIN_BY_DECLARATION"),
    "move limit": ("MAX_MOVES", "DRAW_BY_MAX_PLIES"),
}
_REASONS: dict[str, Reason] = {
    "RESIGN": "resignation",
    "MATE": "checkmate",
    "REPETITION_DRAW": "repetition",
    "WIN_BY_DECLARATION": "declaration",
    "MAX_MOVES": "move limit",
    "IMPASSE": "move limit",
}
_FOULS = ("WIN_BY_ILLEGAL_MOVE", "LOSE_BY_ILLEGAL_MOVE")


def _with_ending(record: GameRecord, terminal: SpecialMoveEntry | None) -> GameRecord:
    """The record with the outcome that its file states, or the one by the rules."""
    by_rules = record.game().outcome
    if terminal is None or terminal.kind in ("INTERRUPT", "UNKNOWN"):
        return replace(record, outcome=by_rules)
    result, kind = terminal.result, terminal.kind
    winner: Side | None = (
        "black" if result.is_black_win() else "white" if result.is_white_win() else None
    )
    if by_rules and by_rules.winner == winner:
        # The formats write both of these in the words of something else.
        if kind in _FOULS and by_rules.reason == "perpetual check":
            return replace(record, outcome=by_rules)
        if kind == "MATE" and by_rules.reason == "no legal move":
            return replace(record, outcome=by_rules)
    outcome = Outcome(winner, _REASONS[kind]) if kind in _REASONS else None
    unsaid = outcome is None or kind == "IMPASSE"
    return replace(record, outcome=outcome, ending=result.name if unsaid else None)


def _terminal(record: GameRecord) -> SpecialMoveEntry | None:
    if record.ending:
        return SpecialMoveEntry.from_result(GameResult.from_str(record.ending))
    if record.outcome is None:
        return None
    kind, result = _TERMINALS[record.outcome.reason]
    return SpecialMoveEntry(kind, result.format((record.outcome.winner or "").upper()))


# -- reading -------------------------------------------------------------------------------------


def read_record(path: str | os.PathLike[str]) -> GameRecord:
    """The game in a file; its suffix says the format.

    A file that cannot be read raises a `RecordError` that names the line and what is wrong.
    """
    path = Path(path)
    _format_of(path)  # what is wrong with the name is said first
    return parse_record(path.read_bytes(), path)


def parse_record(data: bytes, path: str | os.PathLike[str]) -> GameRecord:
    """The game in the bytes of a file of that name."""
    path = Path(path)
    form, _ = _format_of(path)
    lines = _main_line(form, _decode(path, data))
    _refuse_second_game(path, form, lines)
    try:
        record = _parse(form, lines)
    except ValueError as error:
        raise RecordError(f"{path}, {_locate(form, lines, error)}") from None
    if not record.moves and not any(re.match(form.header, line) for line in lines):
        number, text = next(((n, t) for n, t in enumerate(lines, 1) if t.strip()), (1, ""))
        raise RecordError(f"{path}, line {number}: {text[:80]!r}: this is not a {form.name} record")
    return record


def _decode(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    try:
        return data.decode("cp932")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        text = data.split(b"\n")[number - 1][:80]
        raise RecordError(f"{path}, line {number}: {text!r} is neither UTF-8 nor CP932") from None


def _main_line(form: _Format, text: str) -> list[str]:
    """The lines of the file, without what rsshogi stumbles over and a record does not keep."""
    lines = re.split(r"\r\n|\r|\n", text)
    if form in (_KIF, _KI2):
        variation = next((n for n, t in enumerate(lines) if t.startswith("変化")), len(lines))
        lines = ["" if line.startswith("&") else line for line in lines[:variation]]  # & bookmarks
    if form is _CSA:
        is_over = any(line.startswith("%") for line in lines)
        lines = [_csa_line(line, is_over) for line in lines]
    return lines


def _csa_line(line: str, is_over: bool) -> str:
    """A line without what servers add: their words (#WIN), and what an engine thought (** 30).

    Some say only in such a word how the game ended.
    """
    if line.startswith("#") and not is_over:
        return _SERVER_WORDS.get(line[1:].strip(), "")
    return "" if line.startswith(("#", "**")) else line


def _refuse_second_game(path: Path, form: _Format, lines: list[str]) -> None:
    """Say so when there are more games: to read one of them would lose the others silently."""
    filled = [number for number, line in enumerate(lines) if line.strip()]
    second = None
    if form is _USI and len(filled) > 1:
        second = filled[1]
    elif form is _CSA and "/" in lines:
        second = next((number for number in filled if number > lines.index("/")), None)
    if second is not None:
        raise RecordError(f"{path}, line {second + 1}: {lines[second][:80]!r}: a second game")


def _parse(form: _Format, lines: list[str]) -> GameRecord:
    if form is _KI2:
        first = next((n for n, line in enumerate(lines) if has_moves(line)), len(lines))
        start = form.parse("\n".join(lines[:first]) + "\n").init_position_sfen
        moves = ki2_moves(start, lines[first:])
    raw = form.parse("\n".join(lines) + "\n")
    if form is _KI2 and moves != [entry.move.to_usi() for entry in raw.moves]:
        raise RecordError("these moves can be read in two ways")
    _check_what_rsshogi_lets_pass(form, lines, raw)
    comments = {0: raw.initial_comment, **{n: m.comment for n, m in enumerate(raw.moves, start=1)}}
    record = GameRecord(
        raw.init_position_sfen,
        tuple(entry.move.to_usi() for entry in raw.moves),
        raw.metadata.black_player or "",
        raw.metadata.white_player or "",
        comments={number: comment for number, comment in comments.items() if comment},
    )
    return _with_ending(record, raw.main_terminal)


def _check_what_rsshogi_lets_pass(form: _Format, lines: list[str], raw: Record) -> None:
    end = raw.main_terminal
    if form is _CSA:
        glued = next((line for line in lines if re.match(r"[+-]\d{4}[A-Z]{2}[^,\s]", line)), None)
        if glued:
            raise RecordError("there is more after the move, without a comma")
    elif end and re.search(r"[\d同]", end.unknown_name or ""):
        raise RecordError("this is neither a move nor an ending")
    if form in (_KIF, _KI2) and raw.init_position_sfen == START_SFEN:
        handicap = next((line for line in lines if line.startswith("手合割")), "平手")
        if "落" in handicap:
            raise RecordError("unknown handicap")


def _locate(form: _Format, lines: list[str], error: ValueError) -> str:
    """Which line `error` is about, and which part of it: what follows the last good beginning."""

    def problem(count: int, end: int | None = None) -> str | None:
        some = [*lines[: count - 1], lines[count - 1][:end]] if count else []
        try:
            if any(line.strip() for line in some):
                _parse(form, some)
        except ValueError as found:  # its words alone: it keeps boards, which must not leave here
            return str(found)
        return None

    header = next((n for n, line in enumerate(lines) if re.match(form.first_move, line)), 0)
    good, bad = (0, header) if problem(header) else (header, len(lines))
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if problem(middle) else (middle, bad)
    text = lines[bad - 1]
    parts = re.finditer(form.statement, text)
    part = next((p for p in parts if problem(bad, p.end()) and not problem(bad, p.start())), None)
    why = problem(bad, part.end() if part else None) or str(error)
    said = part.group().strip() if part else text.strip()
    where = f"line {bad}: {said[:80]!r}: "
    if part is None or not re.search(r"illegal move|invalid \w+ move:", why):
        return where + why
    before = [*lines[: bad - 1], text[: part.start()]]
    game = _parse(form, before).game() if any(map(str.strip, before)) else ShogiGame()
    return f"{where}not a legal move (move {len(game.moves) + 1}) in {game.sfen()}"


# -- writing -------------------------------------------------------------------------------------


def write_record(record: GameRecord, path: str | os.PathLike[str]) -> None:
    """Write the game to a file; its suffix says the format.

    A file that was there before is replaced only when the new one is safely on the disk. A
    character that CP932 lacks, such as the "ü" of a name, is refused by `.kif` and `.ki2`: `.kifu`
    and `.ki2u` can write it. An `ending` that the format has no word for is left out.
    """
    path = Path(path)
    replace_file(path, record_bytes(record, path))


def record_bytes(record: GameRecord, path: str | os.PathLike[str]) -> bytes:
    """What `write_record` would write to a file of that name."""
    path = Path(path)
    form, encoding = _format_of(path)
    try:
        text = _text(form, record)
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        raise RecordError(
            f"{path}: CP932 has no {text[error.start]!r}; use {path.suffix}u, which is UTF-8"
        ) from None
    except ValueError as error:
        raise RecordError(f"{path}: {form.name} cannot express {record.outcome}: {error}") from None


def _text(form: _Format, record: GameRecord) -> str:
    raw = Record.from_main_line(
        record.start_sfen,
        [MoveEntry(usi, comment=record.comments.get(n)) for n, usi in enumerate(record.moves, 1)],
        terminal=_terminal(record),
        metadata=RecordMetadata(black_player=record.black, white_player=record.white),
        initial_comment=record.comments.get(0),
    )
    try:
        text = form.text(raw)
    except ValueError:
        if record.ending is None:
            raise
        return _text(form, replace(record, outcome=None, ending=None))
    if form is _CSA:
        # By the standard an empty square is " * "; rsshogi writes "*  ", which others misread.
        text = re.sub(
            r"^P[1-9].*", lambda row: row.group().replace("*  ", " * "), text, flags=re.MULTILINE
        )
        text = text if text.isascii() else f"'CSA encoding=UTF-8\n{text}"
    return text.rstrip("\n") + "\n"
