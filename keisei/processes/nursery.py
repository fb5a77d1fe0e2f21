"""Where processes come from: one that has loaded PyTorch, and forks another whenever it is asked.

A fresh Python takes seconds of processor time to load PyTorch, and 150 MB for each process. A fork
has it at once and shares that memory. This is safe because the process that is forked does nothing
but load modules: it has one thread, and has never computed anything.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from importlib import import_module
from typing import Any

MAX_MESSAGE = 1 << 20
DESCRIPTORS = 200  # in one message; the kernel passes on 253 at most
START_TIMEOUT = 60.0


class Forked:
    """A process from the nursery; what `subprocess.Popen` has, as far as it is needed."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line  # tells its number, and in the end its exit code
        self._line.settimeout(START_TIMEOUT)
        self.pid = int(self._line.recv(64) or self._lost())
        self.returncode: int | None = None

    def _lost(self) -> int:
        raise ConnectionError("the process that starts others is gone")

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Wait for its end; returns its exit code."""
        if self.returncode is None:
            self._line.settimeout(max(timeout, 1e-6))
            try:
                # If the nursery is killed, nobody knows how its children ended.
                self.returncode = int(self._line.recv(64) or -signal.SIGKILL)
            except ConnectionError:
                self.returncode = -signal.SIGKILL
            except TimeoutError:
                raise subprocess.TimeoutExpired(str(self.pid), timeout) from None
            self._line.close()
        return self.returncode

    def kill(self) -> None:
        """End it at once."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class Nursery:
    """This process's line to its nursery, which is started when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._line: socket.socket | None = None
        self._owner = 0  # a fork of this process has no nursery

    def start(
        self, module: str, descriptors: dict[str, list[int]], preload: str, own_session: bool
    ) -> Forked:
        """Have `module.main()` run in a new process, with these descriptors as its options."""
        fds = [fd for group in descriptors.values() for fd in group]
        request = {
            "module": module,
            "preload": preload,
            "options": {name: len(group) for name, group in descriptors.items()},
            "environment": dict(os.environ),
            "folder": os.getcwd(),
            "path": sys.path,
            "own_session": own_session,
        }
        try:
            return self._ask(request, fds)
        except ConnectionError:  # it was killed just now: the next one will do
            return self._ask(request, fds)

    def _ask(self, request: dict[str, Any], fds: list[int]) -> Forked:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs, self._lock:
                line = self._running()
                socket.send_fds(line, [pickle.dumps(request)], [theirs.fileno()])
                for at in range(0, len(fds), DESCRIPTORS):
                    socket.send_fds(line, [b"more"], fds[at : at + DESCRIPTORS])
            return Forked(ours)
        except BaseException:
            ours.close()
            raise

    def _running(self) -> socket.socket:
        if self._line is None or self._owner != os.getpid() or self._is_gone():
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            # It has the code of this process, whatever lies in the current folder.
            code = f"import sys; sys.path[:] = {sys.path!r}\nfrom {__name__} import main; main()"
            with theirs:
                # One thread each, told before PyTorch is loaded; waiting threads must not spin.
                self._process = subprocess.Popen(
                    [sys.executable, "-c", code, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"},
                )
            ours.settimeout(START_TIMEOUT)
            self._line, self._owner = ours, os.getpid()
        return self._line

    def _is_gone(self) -> bool:
        assert self._line is not None
        return bool(select.select([self._line], [], [], 0)[0])  # it never says anything


def serve(requests: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Fork for each request, and tell its sender how it ends; returns in the new process."""
    lines: dict[int, socket.socket] = {}
    bell, ring = socket.socketpair()
    ring.setblocking(False)
    signal.set_wakeup_fd(ring.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([requests, bell], [], [])
        if bell in ready:
            bell.recv(4096)
            while lines and (ended := os.waitpid(-1, os.WNOHANG))[0]:
                with lines.pop(ended[0]) as line, contextlib.suppress(OSError):
                    line.send(str(os.waitstatus_to_exitcode(ended[1])).encode())
        if requests not in ready:
            continue
        data, fds, _, _ = socket.recv_fds(requests, MAX_MESSAGE, 1)
        if not data:
            os._exit(0)  # the process that it worked for is gone
        request = pickle.loads(data)
        while len(fds) <= sum(request["options"].values()):
            more = socket.recv_fds(requests, MAX_MESSAGE, DESCRIPTORS)[1]
            if not more:
                os._exit(0)
            fds += more
        _load(request)
        pid = os.fork()
        if not pid:
            for line in lines.values():
                line.close()
            for one in (requests, bell, ring):
                one.close()
            os.close(fds[0])
            return request, fds[1:]
        for fd in fds[1:]:
            os.close(fd)
        lines[pid] = socket.socket(fileno=fds[0])
        with contextlib.suppress(OSError):
            lines[pid].send(str(pid).encode())


def _load(request: dict[str, Any]) -> None:
    """Have the modules in this process, for all that it forks; errors are those of the fork."""
    sys.path[:] = request["path"]
    for name in (request["module"], request["preload"]):
        if name and name not in sys.modules:
            with contextlib.suppress(Exception):
                import_module(name)
            gc.freeze()  # what is never looked at stays shared


def run(request: dict[str, Any], fds: list[int]) -> None:
    """Be the process that was asked for, to its end."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request["own_session"]:
        os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    rest = iter(fds)
    options = {name: [next(rest) for _ in range(n)] for name, n in request["options"].items()}
    sys.argv = [request["module"]]
    sys.argv += [f"--{name}={','.join(map(str, group))}" for name, group in options.items()]
    code = 1
    try:
        import_module(request["module"]).main()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # Python would take half a second to forget PyTorch


def main() -> None:
    """Be the nursery of the process that has started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is its parent's business
    run(*serve(socket.socket(fileno=int(sys.argv[1]))))
