"""Small engines that behave badly, as real processes."""

import sys

import pytest

from keisei.config_schema import AppConfig
from keisei.core.ppo_agent import PPOAgent
from keisei.runs.checkpoint import CheckpointStore
from keisei.runs.run import Run
from keisei.settings import to_yaml
from keisei.training.progress import Progress

ENGINE = """
import os, sys
how, log = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else os.devnull
if how == "once":
    with open(log, "a+") as pids:
        print(os.getpid(), file=pids, flush=True)
        pids.seek(0)
        if len(pids.readlines()) > 1:
            sys.exit(1)
for line in sys.stdin:
    word = line.split()[0] if line.split() else ""
    if word == "position" and how == "resigns":
        with open(log, "a") as positions:
            positions.write(line)
    if word == "usi":
        print("usiok", flush=True)
    elif word == "isready":
        print("readyok", flush=True)
    elif word == "go":
        if how in ("dies", "once"):
            sys.exit(1)
        while how.startswith("floods"):
            sys.stdout.write(("info string x" + "\\n" * (how == "floods")) * 100_000)
        if how != "silent":
            print({"illegal": "bestmove 1a1a", "rubbish": "bestmove", "resigns": "bestmove resign",
                   "declares": "bestmove win"}[how], flush=True)
    elif word == "quit":
        break
"""


@pytest.fixture
def bad_engine(tmp_path):
    """The command of an engine that does one thing wrong whenever it is asked for a move.

    To a file, if there is one, "once" writes the number of each of its processes, and "resigns" the
    positions that it was told.
    """
    script = tmp_path / "engine.py"
    script.write_text(ENGINE)
    return lambda *how: [sys.executable, str(script), *how]


@pytest.fixture
def run(tmp_path):
    """A run with three checkpoints of an untrained network."""
    config = AppConfig.model_validate(
        {"model": {"depth": 0, "width": 8}, "training": {"parallel": {"num_workers": 1}}}
    )
    run = Run.create(tmp_path, "small", to_yaml(config))
    agent = PPOAgent(config, "cpu")
    for step in (0, 100, 200):
        progress = Progress(200, steps=step, seconds=step * 36.0)
        CheckpointStore(run.checkpoints_dir).save(
            step,
            {
                "agent": agent.state_dict(),
                "progress": progress.state_dict(),
                "config": to_yaml(config),
            },
        )
    return run
