"""Starting a process of Keisei, with a pipe to it."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
from multiprocessing.connection import Connection


def start_process(
    module: str, descriptors: dict[str, list[int]], timeout: float, own_session: bool = True
) -> tuple[subprocess.Popen[bytes], Connection]:
    """Start a module of Keisei as a process that inherits the descriptors, with a pipe to it.

    It gets them as options, and its end of the pipe as `--connection`. A plain process, not
    `multiprocessing`: nothing is forked, and the user's main module is not imported a second time,
    so scripts need no `if __name__ == "__main__"`. In a session of its own, Ctrl-C reaches the
    parent alone; in the parent's, Ctrl-Z and the parent's priority reach it, too.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs:
        # The kernel's own limits: a stopped process must not hold its parent up in mid-message.
        limit = struct.pack("ll", int(timeout), int(timeout % 1 * 1e6))
        for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
            ours.setsockopt(socket.SOL_SOCKET, option, limit)
        fds = {**descriptors, "connection": [theirs.fileno()]}
        options = [f"--{name}={','.join(map(str, group))}" for name, group in fds.items()]
        process = subprocess.Popen(
            [sys.executable, "-m", module, *options],
            pass_fds=[fd for group in fds.values() for fd in group],
            stdin=subprocess.DEVNULL,
            # One thread each, told before PyTorch is loaded; waiting threads must not spin.
            env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"},
            start_new_session=own_session,
        )
        return process, Connection(ours.detach())


def describe_exit(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name
    hint = {"SIGKILL": " (killed, or out of memory)", "SIGBUS": " (shared memory is full)"}
    return name + hint.get(name, "")
