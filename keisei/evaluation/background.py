"""Rates a run's checkpoints while it trains, in a process that the training starts.

When the training ends, however it ends, so does the pipe between them, and then this process.
"""

from __future__ import annotations

import argparse
import os
import threading
from multiprocessing.connection import Connection
from pathlib import Path

from keisei.evaluation.ladder import LadderSettings
from keisei.evaluation.ladder_report import run_ladder
from keisei.processes.machine import give_way, name_process

LOG = "ladder.log"  # in the run's folder: the terminal is the training's


def main() -> None:
    """Rate the run in the folder that the pipe names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--connection", type=int)
    connection = Connection(parser.parse_args().connection)
    folder: Path = connection.recv()
    threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
    name_process("keisei-rating")
    give_way()
    with (folder / LOG).open("wb") as log:
        for stream in (1, 2):
            os.dup2(log.fileno(), stream)
    run_ladder(str(folder), folder.parent, LadderSettings(processes=1), watch=True)


def _end_with(connection: Connection) -> None:
    """Results are stored as they come, so there is nothing left to do at the end."""
    try:
        connection.recv()
    except (EOFError, OSError):
        os._exit(0)
