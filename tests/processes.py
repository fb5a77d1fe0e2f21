"""Keisei in processes of its own, as a person starts it, but without loading PyTorch each time."""

import atexit
import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

PIPE, DEVNULL, STDOUT = subprocess.PIPE, subprocess.DEVNULL, subprocess.STDOUT
ROOT = Path(__file__).parents[1]
START_TIMEOUT = 120


class Process:
    """A `keisei` command, or a Python script, that runs: `subprocess.Popen` as far as tests use it.

    It is forked by `tests/forkserver.py`, which loads Keisei once.
    """

    def __init__(
        self,
        arguments,
        script=None,
        cwd=None,
        env=None,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    ):
        self.args = [str(script or "keisei"), *map(str, arguments)]
        self.returncode = None
        self.stdin, stdin_fd = _stream(stdin, "w")
        self.stdout, stdout_fd = _stream(stdout, "r")
        self.stderr, stderr_fd = _stream(stdout_fd if stderr == STDOUT else stderr, "r")
        request = {
            "arguments": self.args,
            "script": script and str(script),
            "folder": str(cwd or os.getcwd()),
            "environment": {**(os.environ if env is None else env), "OMP_NUM_THREADS": "1"},
        }
        fds = [stdin_fd, stdout_fd, stderr_fd]
        self._server = _connect()
        socket.send_fds(self._server, [pickle.dumps(request)], fds)
        for fd in fds:
            os.close(fd)
        self.pid = int(self._server.recv(64))

    def poll(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(timeout=0)
        return self.returncode

    def wait(self, timeout=START_TIMEOUT):
        if self.returncode is None:
            self._server.settimeout(timeout or 1e-9)
            try:
                self.returncode = int(self._server.recv(64))
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self.args, timeout) from None
            self._server.close()
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def communicate(self, input=None, timeout=START_TIMEOUT):
        """Say this, read all that it says until it ends, and return that."""
        readers = [Reader(stream) for stream in (self.stdout, self.stderr)]
        if self.stdin:
            with contextlib.suppress(BrokenPipeError):
                self.stdin.write(input or "")
                self.stdin.close()
        self.wait(timeout)
        for reader in readers:
            reader.join(timeout)
            if reader.is_alive():  # a process that it has started still holds the stream
                raise subprocess.TimeoutExpired(self.args, timeout)
        return tuple(reader.text for reader in readers)


class Reader(threading.Thread):
    """Reads a stream to its end, while others are read, too."""

    text = None

    def __init__(self, stream):
        super().__init__(daemon=True)
        self._stream = stream
        self.start()

    def run(self):
        if self._stream:
            self.text = self._stream.read()


def run_keisei(*arguments, input=None, timeout=200, **how):
    """Run a `keisei` command to its end."""
    process = Process(arguments, stdin=DEVNULL if input is None else PIPE, **how)
    try:
        out, err = process.communicate(input, timeout)
    finally:
        process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@contextlib.contextmanager
def keisei_in(folder):
    """Starts `keisei` commands in this folder; what still runs at the end is killed."""
    started = []

    def start(*arguments):
        started.append(Process(arguments, cwd=folder))
        return started[-1]

    try:
        yield start
    finally:
        for process in started:
            process.kill()
            process.wait()


def _stream(wanted, mode):
    """Our end of a stream as a file, and the process's end as a descriptor."""
    if wanted == DEVNULL:
        return None, os.open(os.devnull, os.O_RDWR)
    if wanted != PIPE:
        return None, os.dup(wanted if isinstance(wanted, int) else wanted.fileno())
    reading, writing = os.pipe()
    ours, theirs = (writing, reading) if mode == "w" else (reading, writing)
    return open(ours, mode, buffering=1 if mode == "w" else -1), theirs


_address = None


def _connect():
    """A line to the server, which the first call starts."""
    global _address
    if _address is None:
        folder = tempfile.mkdtemp(prefix="keisei-forkserver-")
        _address = f"{folder}/socket"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(_address)
            listening.listen()
            server = subprocess.Popen(
                [sys.executable, "-m", "tests.forkserver", str(listening.fileno())],
                cwd=ROOT,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                pass_fds=[listening.fileno()],
                stdin=PIPE,  # its end, with this process, ends the server
            )
        atexit.register(_end, server, folder)
    line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    line.settimeout(START_TIMEOUT)
    line.connect(_address)
    return line


def _end(server, folder):
    server.kill()
    server.wait(timeout=10)
    Path(f"{folder}/socket").unlink()
    Path(folder).rmdir()
