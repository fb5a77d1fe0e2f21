"""Ends what is left of a run's own Ray cluster when the run's process is gone, however it ended.

Ray ends most of its processes with the one that started them, but its agents wait a minute for a
server that is gone. This runs as a process of its own and reads which they are from a pipe, which
ends with the process that started it.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Collection

import psutil


def start_reaper() -> subprocess.Popen[bytes]:
    """Start it; `end_with_this_process` tells it whom to end."""
    # It has the code of this process, whatever lies in the current folder.
    code = f"import sys; sys.path[:] = {sys.path!r}\nfrom {__name__} import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C, or the end of the terminal, is not for it
    )


def end_with_this_process(
    reaper: subprocess.Popen[bytes], others: Collection[psutil.Process]
) -> None:
    """What this process has started must not outlive it, but for the `others` and the reaper."""
    assert reaper.stdin is not None
    for started in psutil.Process().children():
        if started.pid == reaper.pid or started in others:
            continue
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in (started, *started.children(recursive=True)):
                # The number of a process alone may be another's by then.
                reaper.stdin.write(b"%d %r\n" % (process.pid, process.create_time()))
    reaper.stdin.flush()


def main() -> None:
    """Read until the pipe ends, then end what is left."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # whoever ends all must not end this first
    for line in sys.stdin.read().splitlines():
        pid, started = line.split()
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(int(pid))
            if process.create_time() == float(started):
                process.kill()
