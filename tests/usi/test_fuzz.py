"""Rubbish on the engine's input: after each line it still says `readyok`."""

import os
import random

import pytest

SESSION = """\
usi
isready
setoption name USI_Hash value 64
setoption name USI_Ponder value true
setoption name Nodes value 8
setoption name Resign value 5
setoption name MoveOverhead value 100
setoption name Threads value 1
usinewgame
position startpos
position startpos moves 7g7f 3c3d 8h2b+ 3a2b B*4e
position sfen lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1 moves 2g2f
position sfen 4k4/9/4G4/9/9/9/9/9/4K4 b G 1
position sfen l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1
go nodes 3
go btime 0 wtime 0 byoyomi 20
go btime 100 wtime 100 binc 10 winc 10
go movetime 15
go infinite
go ponder btime 10 wtime 10
go mate 10
stop
ponderhit
gameover win""".splitlines()
LINES = int(os.environ.get("KEISEI_FUZZ_LINES", "400"))


def mutated(rng):
    """A line of a real session, with words and characters exchanged, doubled, lost or invented."""
    words = rng.choice(SESSION).split(" ")
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        at = rng.randrange(len(words))
        kind = rng.randrange(6)
        if kind == 0:
            words[at] = rng.choice(rng.choice(SESSION).split(" "))
        elif kind == 1:
            words.insert(at, words[at])
        elif kind == 2 and len(words) > 1:
            del words[at]
        elif kind == 3:
            words[at] = str(rng.choice((-1, 0, 10**30, "1e9", "٣", "", "\x00", "将棋", "P*5e+")))
        else:
            text = list(words[at])
            text[rng.randrange(len(text) + 1) : rng.randrange(len(text) + 1)] = chr(
                rng.randrange(1, 300)
            )
            words[at] = "".join(text)
    line = " ".join(words).replace("\n", " ").replace("\r", " ")
    # What cannot be a fair line: `quit` ends it by right, and so does a model from nowhere.
    return "" if line.split()[:1] == ["quit"] or "Threads" in line else line


@pytest.mark.timeout(3600 if LINES > 1000 else 300)
def test_after_every_line_of_rubbish_the_engine_is_ready(engine):
    rng = random.Random(1)
    for _ in range(LINES):
        line = mutated(rng)
        engine.send(line)
        engine.send("stop")
        engine.send("isready")
        engine.wait_for("readyok", 60)
    engine.send("stop")
    engine.send("setoption name Nodes value 0")
