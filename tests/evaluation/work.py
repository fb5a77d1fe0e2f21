"""Work for processes, in a module that is quickly loaded."""

import os
import signal

from keisei.errors import KeiseiError


def die_at_first(path):
    if not path.exists():
        path.touch()
        die(path)
    return os.getpid()


def die(path):
    os.kill(os.getpid(), signal.SIGKILL)


def fail(path):
    raise KeiseiError(f"not {path}")
