"""Starting a process of Keisei, with a pipe to it."""

from __future__ import annotations

import signal
import socket
import struct
from multiprocessing.connection import Connection

import psutil

from keisei.processes.nursery import Forked, Nursery

_nursery = Nursery()


def start_process(
    module: str,
    descriptors: dict[str, list[int]],
    timeout: float,
    preload: str = "",
    own_session: bool = True,
) -> tuple[Forked, Connection]:
    """Run `main()` of a module of Keisei in a new process with the descriptors, and a pipe to it.

    It gets them as options, and its end of the pipe as `--connection`. Not by `multiprocessing`:
    this process is not forked, and its main module is not imported a second time, so scripts need
    no `if __name__ == "__main__"`. What is loaded beforehand (the module, and `preload`) is shared
    with other such processes. In a session of its own, Ctrl-C reaches the parent alone; in the
    parent's, Ctrl-Z and the parent's priority reach it, too.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs:
        # The kernel's own limits: a stopped process must not hold its parent up in mid-message.
        limit = struct.pack("ll", int(timeout), int(timeout % 1 * 1e6))
        for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
            ours.setsockopt(socket.SOL_SOCKET, option, limit)
        fds = {**descriptors, "connection": [theirs.fileno()]}
        process = _nursery.start(module, fds, preload, own_session)
        return process, Connection(ours.detach())


def was_killed(code: int) -> bool:
    """Did a person or the system end the process? Its own faults have other exit codes."""
    outside = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
    return -code in outside


def is_stopped(pid: int) -> bool:
    """Was the process halted (SIGSTOP, a debugger)? It does nothing then, for all that it can."""
    try:
        return psutil.Process(pid).status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
    except psutil.Error:  # it has just ended
        return False


def describe_exit(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name
    hint = {"SIGKILL": " (killed, or out of memory)", "SIGBUS": " (shared memory is full)"}
    return name + hint.get(name, "")
