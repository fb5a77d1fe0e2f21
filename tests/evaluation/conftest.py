"""Small engines that behave badly, as real processes."""

import sys

import pytest

ENGINE = """
import sys
how, moves = sys.argv[1], 0
for line in sys.stdin:
    word = line.split()[0] if line.split() else ""
    if word == "usi":
        print("usiok", flush=True)
    elif word == "isready":
        print("readyok", flush=True)
    elif word == "go":
        if how == "dies":
            sys.exit(1)
        if how != "silent":
            print({"illegal": "bestmove 1a1a", "rubbish": "bestmove", "resigns": "bestmove resign",
                   "declares": "bestmove win"}[how], flush=True)
    elif word == "quit":
        break
"""


@pytest.fixture
def bad_engine(tmp_path):
    """The command of an engine that does one thing wrong whenever it is asked for a move."""
    script = tmp_path / "engine.py"
    script.write_text(ENGINE)
    return lambda how: [sys.executable, str(script), how]
