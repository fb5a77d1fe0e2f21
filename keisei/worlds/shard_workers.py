"""Workers that step the shards of a world: processes of this machine, or actors of Ray."""

from __future__ import annotations

import contextlib
import subprocess
from typing import Any

from keisei.errors import KeiseiError
from keisei.processes.line import start_process
from keisei.worlds.shard import Answer, Shard, Task

START_TIMEOUT = 120.0
TURN_TIMEOUT = 120.0  # what takes longer is taken for hung
STOP_TIMEOUT = 10.0


class WorkerLost(KeiseiError):
    """A worker was killed, hangs or never came; the message says which."""


class ProcessWorker:
    """A process that steps a shard."""

    def __init__(self, task: Task, name: str) -> None:
        self.name = name
        try:
            self.process, self._connection = start_process("keisei.worlds.shard", {}, START_TIMEOUT)
        except OSError as error:  # no memory, no descriptor, no process to be had
            raise WorkerLost(f"{name} could not be started: {error}") from error
        self._limit = START_TIMEOUT + TURN_TIMEOUT  # until it has answered once
        self._send(task)

    def ask(self, call: str, *arguments: Any) -> None:
        """Have something done; `answer` tells what came of it."""
        self._send((call, arguments))

    def _send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # it is gone: `answer` will see, and say so
            self._connection.send(message)

    def answer(self) -> Answer:
        """What came of it, or `WorkerLost`; what is wrong with the world itself is an error."""
        try:
            if not self._connection.poll(self._limit):
                raise WorkerLost(f"{self.name} did not answer within {self._limit:.0f} s")
            answer = self._connection.recv()
        except (EOFError, OSError):
            raise WorkerLost(f"{self.name} was killed or crashed") from None
        self._limit = TURN_TIMEOUT
        if isinstance(answer, str):
            raise KeiseiError(answer)
        done: Answer = answer
        return done

    def close(self) -> None:
        """End the process: it keeps nothing that cannot be done again."""
        self._connection.close()
        self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_TIMEOUT)


class RayWorker:
    """An actor that steps a shard, somewhere in the cluster that this process is connected to."""

    def __init__(self, task: Task, name: str) -> None:
        from keisei.processes.ray_cluster import import_ray

        self.name, self._ray = name, import_ray()
        # It is not started again by Ray: it would come back without what its shard had done.
        self.actor = self._ray.remote(num_cpus=1, max_restarts=0)(Shard).remote(task)
        self._limit = START_TIMEOUT + TURN_TIMEOUT

    def ask(self, call: str, *arguments: Any) -> None:
        """Have something done; `answer` tells what came of it."""
        self._asked = self.actor.do.remote(call, *arguments)

    def answer(self) -> Answer:
        """What came of it, or `WorkerLost`; what is wrong with the world itself is an error."""
        errors = self._ray.exceptions
        try:
            answer: Answer = self._ray.get(self._asked, timeout=self._limit)
        except errors.GetTimeoutError:
            raise WorkerLost(f"{self.name} did not answer within {self._limit:.0f} s") from None
        except errors.RayTaskError as error:
            cause = error.cause
            kind = "" if isinstance(cause, KeiseiError) else f"{type(cause).__name__}: "
            raise KeiseiError(f"{kind}{cause}") from None
        except errors.RayError:
            raise WorkerLost(f"{self.name} was lost with its node, or killed") from None
        self._limit = TURN_TIMEOUT
        return answer

    def close(self) -> None:
        """End the actor."""
        with contextlib.suppress(Exception):  # the cluster may be gone
            self._ray.kill(self.actor)


Worker = ProcessWorker | RayWorker
