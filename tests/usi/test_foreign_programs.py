"""Programs that nobody here wrote drive the engine: cshogi's match tool, and XBoard.

Both are GPL: they run as their own processes, cshogi with a Python of its own. To have them:

    python3 -m venv /tmp/cshogi && /tmp/cshogi/bin/pip install cshogi
    export KEISEI_CSHOGI_PYTHON=/tmp/cshogi/bin/python
    apt install xboard uci2wb xvfb
"""

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

CSHOGI = os.environ.get("KEISEI_CSHOGI_PYTHON", "")
XBOARD, BRIDGE = Path("/usr/games/xboard"), Path("/usr/games/uci2wb")
GAMES = int(os.environ.get("KEISEI_FOREIGN_GAMES", "2"))


@pytest.fixture
def script(command, tmp_path):
    """The engine as one executable file."""
    path = tmp_path / "engine.sh"
    path.write_text(f"#!/bin/sh\nexec {shlex.join(command)} --nodes 4\n")
    path.chmod(0o755)
    return path


@pytest.mark.skipif(not CSHOGI, reason="KEISEI_CSHOGI_PYTHON names no Python with cshogi")
@pytest.mark.timeout(3600)
def test_cshogi_plays_whole_games_with_the_engine(script, tmp_path):
    limits = ["--games", str(GAMES), "--byoyomi", "1000", "--draw", "100", "--debug"]
    done = subprocess.run(
        [CSHOGI, "-m", "cshogi.cli", str(script), str(script), *limits],
        capture_output=True,
        text=True,
        timeout=1800 * GAMES,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "illegal" not in done.stdout.lower()
    assert len(re.findall(r"^1:gameover", done.stdout, re.MULTILINE)) == GAMES
    assert "info string" not in done.stdout  # the engine understood every line


@pytest.mark.skipif(
    not (XBOARD.is_file() and BRIDGE.is_file() and shutil.which("xvfb-run")),
    reason="XBoard is not here: apt install xboard uci2wb xvfb",
)
def test_xboard_plays_a_game_with_the_engine(script, tmp_path):
    program, log = f"{BRIDGE} -s {script}", tmp_path / "debug.txt"
    pgn = tmp_path / "game.pgn"
    xboard = [
        "xvfb-run",
        "-a",
        str(XBOARD),
        "-variant",
        "shogi",
        "-mg",
        "1",
        "-tc",
        "5",
        "-inc",
        "1",
    ]
    files = ["-sgf", str(pgn), "-debug", "-nameOfDebugFile", str(log)]
    process = subprocess.Popen(
        [*xboard, "-fcp", program, "-scp", program, "-adjudicateDrawMoves", "30", *files],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    try:
        # After the match XBoard shows a window and stays: it is over when the game is written.
        end = time.monotonic() + 200
        while process.poll() is None and time.monotonic() < end:
            if pgn.is_file() and re.search(r"\s(1-0|0-1|1/2-1/2)\s*$", pgn.read_text()):
                break
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
    assert re.search(r'\[Result "(1-0|0-1|1/2-1/2)"\]', pgn.read_text())
    said = log.read_text(errors="replace").lower() + pgn.read_text().lower()
    for trouble in ("illegal move", "forfeits", "exited unexpectedly"):
        assert trouble not in said
