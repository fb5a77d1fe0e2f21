"""Game records that somebody pasted or dropped: KIF, KI2, CSA, USI or SFEN, told by their text."""

from __future__ import annotations

import re
from typing import NamedTuple

from keisei.shogi.records import RecordError, parse_record
from keisei.shogi.variations import GameTree, read_tree
from keisei.web.kept import MAX_MOVES
from keisei.web.threads import WebError


class _Form(NamedTuple):
    name: str
    suffix: str
    sign: re.Pattern[str]  # what only such a record has
    move: re.Pattern[str]  # what each of its moves has


def _form(name: str, suffix: str, sign: str, move: str) -> _Form:
    return _Form(name, suffix, re.compile(sign, re.MULTILINE), re.compile(move, re.MULTILINE))


_USI_MOVE = r"(?:[1-9][a-i]|[PLNSGBR]\*)[1-9][a-i]\+?"
_SFEN = r"[1-9+KRBGSNLPkrbgsnlp]+(?:/[1-9+KRBGSNLPkrbgsnlp]+){8} [bw] \S+"
_FORMS = (
    _form("CSA", ".csa", r"^[+-]\d{4}[A-Z]{2}|^V\d|^PI|^P1|^N[+-]", r"^[+-]\d"),
    # Within a line: \s would go on from each of many empty lines to the last of them.
    _form("KIF", ".kif", r"^[ \t]*\d+[ \t]+(?:[１-９]|同|投了|中断|詰み)|^手数--", r"^[ \t]*\d+\s"),
    _form("KI2", ".ki2", r"[▲△☗☖▼▽]|^(?:手合割|先手|後手|下手|上手)：", r"[▲△☗☖▼▽]"),
    _form(
        "USI",
        ".usi",
        rf"\A\s*(?:position\s|startpos|sfen\s|{_SFEN}|{_USI_MOVE}(?:\s|\Z))",
        _USI_MOVE,
    ),
)


def read_text(data: bytes) -> GameTree:
    """The game in a text; whatever is wrong with it is one sentence.

    >>> read_text(b"position startpos moves 7g7f 3c3d").record.moves
    ('7g7f', '3c3d')
    """
    text = _decode(data)
    form = next((form for form in _FORMS if form.sign.search(text)), None)
    if form is None:
        raise WebError(400, "this is not a game record in KIF, KI2, CSA, USI or SFEN")
    if sum(1 for _ in form.move.finditer(text)) > MAX_MOVES:
        raise WebError(400, f"this record has more than {MAX_MOVES:,} moves, which are too many")
    try:
        if form.suffix == ".usi":
            return GameTree(parse_record(_position(text).encode(), f"USI{form.suffix}"))
        record = parse_record(data, f"{form.name}{form.suffix}")
        return read_tree(text, record) if form.suffix == ".kif" else GameTree(record)
    except RecordError as error:
        what = str(error).removeprefix(f"{form.name}{form.suffix}, ")
        raise WebError(400, f"this {form.name} record cannot be read: {what}") from None


def _decode(data: bytes) -> str:
    """The text, as far as it is needed to see what it is."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp932", "replace")


def _position(text: str) -> str:
    """A line of USI as engines get it, from one that may lack its beginning."""
    line = text.strip().removeprefix("position").strip()
    if re.match(_USI_MOVE, line):
        line = f"startpos moves {line}"
    elif re.match(_SFEN, line):
        line = f"sfen {line}"
    if not re.search(r"\bmoves\b", line) and re.match(rf"sfen {_SFEN}\s*$", line):
        line += " 1" if len(line.split()) == 4 else ""
    return f"position {line}"
