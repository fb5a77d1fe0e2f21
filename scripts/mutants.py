"""Puts faults into a copy of the code, one at a time, and sees whether the tests notice.

python scripts/mutants.py [NAME ...]      # all faults, or those with these words in their names

The faults are in tests/mutants/faults.py. Exits with 1 if fewer than 95 % were noticed, or if one
that is not named there as a survivor was not.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
os.environ["OMP_NUM_THREADS"] = "1"  # read as PyTorch is loaded; tests compare bits

# What tests load and no fault is in: loaded once, and shared by all the processes that run them.
import numpy  # noqa: E402, F401
import psutil  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402, F401

from tests.mutants.faults import FAULTS, SURVIVES, Fault  # noqa: E402

TIMEOUT = 180.0  # seconds; a fault that makes tests hang is noticed, too
NEEDED = 0.95
OUTPUT = "output.txt"  # of the last tests that ran in a copy


def main(words: Sequence[str]) -> int:
    """Try the faults, print what came of each, and return the exit code."""
    chosen = [f for f in FAULTS if not words or any(word in f.name for word in words)]
    if not chosen:
        print(
            f"no fault has {' or '.join(map(repr, words))} in its name; see tests/mutants/faults.py"
        )
        return 2
    start, alive = time.monotonic(), []
    with copies_of_the_code(os.cpu_count() or 1) as free, ThreadPoolExecutor(free.qsize()) as pool:
        whole = sorted({test for fault in chosen for test in fault.tests.split()})
        if not passes(whole, free):
            print("the tests fail without any fault: nothing can be said")
            return 2
        results = pool.map(lambda fault: try_out(fault, free), chosen)
        for fault, noticed in zip(chosen, results, strict=True):
            said = "noticed " if noticed else "SURVIVED"
            print(f"{said}  {fault.file}: {fault.name}", flush=True)
            if not noticed:
                alive.append(fault.name)
    score = 1 - len(alive) / len(chosen)
    print(f"{len(chosen) - len(alive)} of {len(chosen)} faults noticed ({score:.0%}), ", end="")
    print(f"in {time.monotonic() - start:.0f} s")
    for name in alive:
        print(f"not noticed: {name}: {SURVIVES.get(name, 'it should be')}")
    return int(score < NEEDED or not set(alive) <= set(SURVIVES))


@contextmanager
def copies_of_the_code(count: int) -> Iterator[Queue[Path]]:
    """So many copies, each for one process at a time."""
    free: Queue[Path] = Queue()
    with tempfile.TemporaryDirectory(prefix="keisei-mutants-") as folder:
        for number in range(count):
            copy = Path(folder, str(number))
            for part in ("keisei", "tests", "examples", "docs"):
                ignore = shutil.ignore_patterns("__pycache__", "static", "*.png")
                shutil.copytree(ROOT / part, copy / part, ignore=ignore)
            shutil.copy(ROOT / "pyproject.toml", copy)
            free.put(copy)
        yield free


def try_out(fault: Fault, free: Queue[Path]) -> bool:
    """Is the fault noticed?"""
    copy = free.get()
    path = copy / "keisei" / fault.file
    sound = path.read_text(encoding="utf-8")
    try:
        path.write_text(sound.replace(fault.old, fault.new), encoding="utf-8")
        return not run_tests(fault.tests.split(), copy)
    finally:
        path.write_text(sound, encoding="utf-8")
        free.put(copy)


def passes(tests: Sequence[str], free: Queue[Path]) -> bool:
    """Do these tests pass as the code is?"""
    copy = free.get()
    try:
        passed = run_tests(tests, copy, timeout=10 * TIMEOUT)
        if not passed:
            print(Path(copy, OUTPUT).read_text(encoding="utf-8", errors="replace")[-4000:])
        return passed
    finally:
        free.put(copy)


def run_tests(tests: Sequence[str], copy: Path, timeout: float = TIMEOUT) -> bool:
    """Run tests in a process that is forked from this one; False also if they hang."""
    pid = os.fork()
    if not pid:
        os.setsid()
        with Path(copy, OUTPUT).open("w+b") as output:
            for stream in range(3):
                os.dup2(output.fileno(), stream)
        os.chdir(copy)
        sys.path[0] = str(copy)
        os.environ |= {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        sys.dont_write_bytecode = True
        for name in list(sys.modules):
            if name.split(".")[0] in ("keisei", "tests"):  # it has the copy's
                del sys.modules[name]
        names = [str(copy / "tests" / test) for test in tests]
        os._exit(int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *names])))
    process = psutil.Process(pid)
    try:
        return process.wait(timeout) == 0
    except psutil.TimeoutExpired:
        os.killpg(pid, signal.SIGKILL)
        process.wait(10)
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
