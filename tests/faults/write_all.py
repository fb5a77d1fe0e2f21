"""Writes every kind of file of a run, over and over, with a fault at the 1st, 2nd, ... nth call.

Started by `test_writes.py` with `failing_writes.c` before the C library. Each try is made by a fork
of this process; what it leaves is looked at here, where nothing fails.
"""

import ctypes
import errno
import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from keisei.config_schema import load_config
from keisei.errors import KeiseiError
from keisei.evaluation.ladder import Entry, Ladder
from keisei.evaluation.pairs import Pentanomial
from keisei.runs.checkpoint import CheckpointStore
from keisei.runs.metrics import MetricsReader, MetricsStore
from keisei.runs.run import Run
from keisei.settings import to_yaml
from keisei.shogi.records import GameRecord, read_record, write_record
from keisei.shogi.rules import START_SFEN

LAYER = ctypes.CDLL(None)
FAULTS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "kill": 0}
OLD, NEW = "training.gamma=0.9", "training.gamma=0.8"
REFUSED, KILLED = 3, -9


@dataclass(frozen=True)
class Files:
    """A run whose files are of its first step, or as far as they are of its second."""

    run: Run

    @property
    def record(self):
        return self.run.games_dir / "game.kif"

    def write_checkpoint(self, step):
        CheckpointStore(self.run.checkpoints_dir).save(step, {"step": step, "more": b"." * 10_000})

    def write_record(self, step):
        write_record(GameRecord(START_SFEN, ("7g7f", "3c3d")[:step]), self.record)

    def write_ladder(self, step):
        results = {("a", "random"): Pentanomial((0, 0, step, 0, 0))}
        entries = {name: Entry(name, name) for name in ("a", "random")}
        Ladder(entries, results).save(self.run.ladder_path)

    def write_config(self, step):
        self.run.change_config(to_yaml(load_config(overrides=[(OLD, NEW)[step - 1]])))

    def write_metrics(self, step):
        with MetricsStore(self.run.metrics_path) as store:
            store.log(step, {"loss": float(step), "entropy": 1.0})
            store.log_event("info", f"step {step}")

    def look(self):
        """Open everything; returns the step that each is of."""
        run = Run.open(self.run.folder, Path())
        with MetricsReader(run.metrics_path) as metrics:
            losses, entropies = metrics.series("loss"), metrics.series("entropy")
        assert [step for step, _ in losses] == [step for step, _ in entropies]
        assert losses[0] == (1, 1.0)
        path, state = CheckpointStore(run.checkpoints_dir).latest()
        assert path.name == f"step_{state['step']:012d}.pt"
        assert (run.checkpoints_dir / "step_000000000001.pt").exists()
        config = load_config(run.config_path)
        return {
            "checkpoint": state["step"],
            "record": len(read_record(self.record).moves),
            "ladder": int(Ladder.load(run.ladder_path).results["a", "random"].pairs),
            "config": {0.9: 1, 0.8: 2}[config.training.gamma],
            "metrics": losses[-1][0],
        }


KINDS = ("checkpoint", "record", "ladder", "config", "metrics")


def attempt(folder, kind, at, fault):
    """Write the second step with a fault at call `at`; returns how it went, and its calls."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        LAYER.begin_failing(os.fsencode(folder), at, FAULTS[fault])
        try:
            getattr(Files(Run(folder)), f"write_{kind}")(2)
            code = 0
        except (KeiseiError, OSError):
            code = REFUSED
        os.write(writing, str(LAYER.calls_so_far()).encode())
        os._exit(code)
    os.close(writing)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with open(reading, "rb") as answer:
        return code, int(answer.read() or 0)


def main(root):
    """All faults in all files; prints for each file how many there were and how they ended."""
    whole = Files(Run.create(root, "whole", to_yaml(load_config(overrides=[OLD]))))
    for kind in KINDS:
        getattr(whole, f"write_{kind}")(1)
    assert set(whole.look().values()) == {1}
    counts = {}
    for kind in KINDS:
        ends = counts[kind] = {"faults": 0, "old": 0, "new": 0, "refused": 0, "killed": 0}
        for fault in FAULTS:
            at, calls = 0, 1
            while calls >= at:
                at += 1
                folder = root / f"{kind}-{fault}-{at}"
                shutil.copytree(whole.run.folder, folder)
                code, calls = attempt(folder, kind, at, fault)
                calls = at if code == KILLED else calls
                found = Files(Run(folder)).look()
                step = found.pop(kind)
                assert set(found.values()) == {1}, (folder, found)
                assert code or step == 2, f"{folder}: said to be written, and is not"
                assert code in (0, REFUSED, KILLED), f"{folder}: ended with {code}"
                if calls >= at:  # else there were fewer calls, and nothing failed
                    ends["faults"] += 1
                    ends["new" if step == 2 else "old"] += 1
                    ends["refused"] += code == REFUSED
                    ends["killed"] += code == KILLED
                getattr(Files(Run(folder)), f"write_{kind}")(2)  # and the next time it works
                assert Files(Run(folder)).look()[kind] == 2
                shutil.rmtree(folder)
    print(json.dumps(counts))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
