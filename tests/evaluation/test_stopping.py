"""Ctrl-C in a match or a ladder: what was played is shown and kept."""

import json
import signal

import pytest

from keisei.evaluation.ladder import Ladder
from tests.processes import keisei_in


@pytest.fixture
def stopped(tmp_path):
    """Runs `keisei` until it has said its first line, presses Ctrl-C, and says how it ended."""
    with keisei_in(tmp_path) as start:

        def run(*arguments):
            process = start(*arguments)
            first = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            rest, error = process.communicate(timeout=60)
            return process.returncode, first + rest, error

        yield run


def test_a_stopped_match_shows_and_writes_what_was_played(stopped, tmp_path):
    code, out, error = stopped(
        "evaluate", "greedy", "random", "--games", "100000", "--at-once", "2", "--json", "m.json"
    )
    assert (code, error.strip()) == (130, "")
    assert "of 100000 games" in out
    assert "95 % interval" in out
    match = json.loads((tmp_path / "m.json").read_text())
    assert f"stopped after {match['wins'] + match['draws'] + match['losses']} of" in out


def test_a_stopped_ladder_shows_what_was_rated_and_keeps_it(stopped, run):
    code, out, error = stopped("ladder", run.name, "--runs-dir", str(run.folder.parent))
    assert (code, error.strip()) == (130, "")
    assert "Elo above the random player" in out
    assert "run the same command to continue" in out
    assert Ladder.load(run.folder / "ladder.json").results
