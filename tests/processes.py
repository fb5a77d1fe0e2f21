"""Keisei in processes of its own, as a person starts it."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager


@contextmanager
def keisei_in(folder):
    """Starts `keisei` in this folder; what still runs at the end is killed."""
    started = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "keisei", *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            preexec_fn=_hear_signals,
        )
        started.append(process)
        return process

    try:
        yield start
    finally:
        for process in started:
            process.kill()
            process.communicate(timeout=60)


def _hear_signals():
    # A shell lets what it starts in the background ignore Ctrl-C, nohup a terminal that is closed.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
