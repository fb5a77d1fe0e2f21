"""Some of a world's copies, where they are stepped: in a process or in an actor of Ray."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from keisei.errors import KeiseiError
from keisei.worlds.config import WorldRunConfig
from keisei.worlds.registry import make_world

Answer = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """Which world a worker steps, in how many copies."""

    config: WorldRunConfig
    copies: int
    folder: str  # where the run was started: the world's own module may lie there


class Shard:
    """Copies of a world that are stepped together; what it is asked comes in order."""

    def __init__(self, task: Task) -> None:
        with contextlib.suppress(OSError):  # on another machine it may not be there
            os.chdir(task.folder)
        self.world = make_world(task.config.model_copy(update={"copies": task.copies}))

    def do(self, call: str, *arguments: Any) -> Answer:
        """Do what is asked, and say what came of it and where the random streams are now."""
        answer: Answer = getattr(self, call)(*arguments)
        return {**answer, "streams": self.world.streams.state.copy()}

    def reset(self, streams: Any) -> Answer:
        """Begin an episode in every copy, from these random streams."""
        self.world.streams.state = streams.copy()
        self.world.reset()
        return {}

    def begin_turn(self) -> Answer:
        """The world's own part of a turn; what agents see then, and who is there."""
        self.world.begin_turn()
        return {"pov": list(self.world.pov()), "present": self.world.present}

    def step(self, actions: Any, moves: list[Any], in_random_order: bool) -> Answer:
        """Let all agents act."""
        for mine, given in zip(self.world.moves, moves, strict=False):  # grid worlds have none
            mine[:] = given
        step = self.world.step_in_random_order if in_random_order else self.world.step
        rewards, dones, truncated = step(actions)
        return {
            "rewards": rewards,
            "dones": dones,
            "truncated": truncated,
            "over": self.world.over.copy(),
            "timed_out": self.world.timed_out(),
            "present": self.world.present,
        }

    def after_cut(self) -> Answer:
        """What agents would have seen next."""
        return {"pov": list(self.world.after_cut())}

    def metrics(self) -> Answer:
        """The world's own numbers."""
        return {"metrics": dict(self.world.metrics())}


def serve(connection: Connection) -> None:
    """Do what is asked until the parent closes the pipe; what goes wrong is an answer."""
    shard: Shard | None = None
    task = connection.recv()
    while True:
        call, arguments = connection.recv()
        try:
            shard = shard or Shard(task)
            answer: Answer | str = shard.do(call, *arguments)
        except KeiseiError as error:
            answer = str(error)
        except Exception as error:  # the world may be the user's code
            answer = f"{type(error).__name__}: {error}"
        connection.send(answer)


def main() -> None:
    """Run a worker's process; `ProcessWorker` starts this."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    parser = argparse.ArgumentParser()
    parser.add_argument("--connection", type=int)
    fds = parser.parse_args()
    with contextlib.suppress(EOFError, OSError):  # the parent is gone: nobody to work for
        serve(Connection(fds.connection))
