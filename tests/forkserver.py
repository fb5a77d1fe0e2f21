"""A process that has loaded Keisei and then forks one for every command that a test starts.

A fresh `python -m keisei` takes two to four seconds to load PyTorch. A fork of a process that has
loaded it, and has done nothing else with it, is as good: a process of its own, with its own
signals, folder, environment and files, that runs the command from its first line to its last. The
nursery of its workers is such a fork, too. `tests/processes.py` starts this.
"""

import atexit
import contextlib
import gc
import importlib
import os
import pickle
import runpy
import select
import signal
import socket
import sys
import threading

from keisei.__main__ import main
from keisei.processes import line, nursery

LOADED = [
    "keisei.cli",
    "keisei.evaluation.background",
    "keisei.evaluation.evaluate",
    "keisei.evaluation.ladder_report",
    "keisei.play",
    "keisei.processes.pool_worker",
    "keisei.training.parallel",
    "keisei.training.parallel.self_play_worker",
    "keisei.training.start",
    "keisei.usi.engine",
    "keisei.web.server",
    "keisei.worlds.learner_worker",
    "keisei.worlds.training",
    "keisei.worlds.watch",
    "matplotlib.backends.backend_agg",
    "matplotlib.figure",
    "tensorboardX.summary",
    "torch._dynamo",
]


def serve(server):
    """Fork for each request, and tell its sender how that process ended; returns in the fork."""
    asked = {}  # by process id, the connection of its request
    bell, ring = socket.socketpair()
    ring.setblocking(False)
    signal.set_wakeup_fd(ring.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([server, bell, sys.stdin], [], [])
        if sys.stdin in ready:
            os._exit(0)  # the tests are over
        if bell in ready:
            bell.recv(4096)
            tell_of_ends(asked)
        if server in ready:
            connection, _ = server.accept()
            request, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
            pid = os.fork()
            if not pid:
                return pickle.loads(request), streams
            for stream in streams:
                os.close(stream)
            connection.sendall(str(pid).encode())
            asked[pid] = connection


def tell_of_ends(asked):
    while asked and (ended := os.waitpid(-1, os.WNOHANG))[0]:
        pid, status = ended
        with asked.pop(pid) as connection, contextlib.suppress(OSError):
            connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def become(request, streams):
    """Be a process as a shell starts one: its own streams, folder, environment and signals."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, 256)
    sys.stdin = sys.__stdin__ = open(0)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", buffering=1 if os.isatty(1) else -1)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    script = request["script"]
    sys.path.insert(0, os.path.dirname(script) if script else request["folder"])
    sys.argv = request["arguments"]
    return script


def have_a_nursery():
    """Fork the nursery now, while it is safe: one that starts later would load PyTorch anew."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if not os.fork():
        ours.close()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        nursery.run(*nursery.serve(theirs))
    theirs.close()
    ours.settimeout(nursery.START_TIMEOUT)
    line._nursery._line, line._nursery._owner = ours, os.getpid()


def leave(code):
    """End as Python does, but for the third of a second that it takes to forget PyTorch."""
    threading._shutdown()
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    for module in LOADED:
        importlib.import_module(module)
    assert len(os.listdir("/proc/self/task")) == 1, "a process with threads must not be forked"
    gc.freeze()
    listening = socket.socket(fileno=int(sys.argv[1]))
    script = become(*serve(listening))
    have_a_nursery()
    try:
        if script:
            runpy.run_path(script, run_name="__main__")
        else:
            main()
    except SystemExit as ended:
        if ended.code not in (None, *range(256)):
            raise
        leave(ended.code or 0)
    leave(0)
