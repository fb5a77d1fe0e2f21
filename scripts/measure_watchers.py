"""What watching costs a training: its speed with 20 browsers beside its speed with none.

    python scripts/measure_watchers.py [--watchers 20] [--minutes 4] [--json FILE]

One training runs all the time, beside one server. In turns, nobody watches, and so many clients
watch as the page does: each asks for the run and its curves, then reads its event stream. The
order of each pair of turns is drawn. Three figures come out:

- speed: the median over pairs of (steps/s with watchers / without), with a bootstrap interval.
  Other work on the machine makes it wide.
- processor time of the server / processor time of the training, in the watched turns: what the
  training loses of its cores when all of them are busy. Other work hardly changes it.
- processor time of the training per step, with watchers / without: what it loses otherwise, as
  when they drive its data out of the caches.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import psutil

from keisei.runs.metrics import MetricsReader

CURVES = ["entropy", "kl", "policy_loss", "value_loss", "game_length", "steps_per_s"]
RUN = "measured"


class Watchers(threading.Thread):
    """So many browsers that look at one run; plain sockets, which cost next to nothing."""

    def __init__(self, address: str, count: int) -> None:
        super().__init__(daemon=True)
        self._host = urlsplit(address).netloc
        self._count = count
        self._stopping = threading.Event()
        self.events = 0
        self.start()

    def run(self) -> None:
        """Open the pages, then listen."""
        run = f"/api/runs/{RUN}"
        series = f"{run}/series?{urlencode([('name', name) for name in CURVES])}"
        with ExitStack() as stack, selectors.DefaultSelector() as ready:
            for _ in range(self._count):
                for path in (run, series):
                    with self._ask(path) as answer:
                        while answer.recv(1 << 16):
                            pass
                ready.register(stack.enter_context(self._ask(f"{run}/stream")), 1)
            while not self._stopping.is_set():
                for key, _ in ready.select(0.2):
                    self.events += os.read(key.fd, 1 << 20).count(b"event: update")

    def _ask(self, path: str) -> socket.socket:
        host, port = self._host.split(":")
        one = socket.create_connection((host, int(port)), timeout=30)
        one.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        return one

    def stop(self) -> None:
        """Close all windows."""
        self._stopping.set()
        self.join(30)


@contextmanager
def process(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that ends with the block."""
    one = subprocess.Popen(command, text=True, **options)
    try:
        yield one
    finally:
        one.terminate()
        try:
            one.wait(30)
        except subprocess.TimeoutExpired:
            one.kill()


class Meter:
    """The training's steps, and the processor time of training and server."""

    def __init__(self, metrics: Path, training: int, server: int) -> None:
        self._metrics = metrics
        self._training, self._server = psutil.Process(training), psutil.Process(server)

    def updates(self) -> int:
        """How many updates there were."""
        if not self._metrics.exists():
            return 0
        with MetricsReader(self._metrics) as reader:
            return len(reader.series("steps_per_s"))

    def wait(self, updates: int, deadline: float) -> None:
        """Wait until there are so many updates more."""
        goal = self.updates() + updates
        while self.updates() < goal:
            if time.monotonic() > deadline:
                raise SystemExit("the training made too few updates in the time given")
            time.sleep(0.2)

    def measure(self, seconds: float, deadline: float) -> dict[str, float]:
        """Steps/s and processor time over the updates of so many seconds."""
        self.wait(1, deadline)  # from the end of an update to the end of another
        before, first = self._times(), self.updates()
        time.sleep(seconds)
        self.wait(1, deadline)
        after, last = self._times(), self.updates()
        with MetricsReader(self._metrics) as reader:
            speeds = [speed for _, speed in reader.series("steps_per_s")[first:last]]
        used = {name: after[name] - before[name] for name in after}
        steps = len(speeds)  # in updates, which all have the same number
        speed = statistics.harmonic_mean(speeds)
        return {"speed": speed, **used, "per_step": used["training"] / steps}

    def _times(self) -> dict[str, float]:
        tree = [self._training, *self._training.children(recursive=True)]
        return {"training": sum(map(_used, tree)), "server": _used(self._server)}


def _used(one: psutil.Process) -> float:
    times = one.cpu_times()
    return float(times.user + times.system)


def interval(ratios: list[float], rng: random.Random) -> tuple[float, float]:
    """The 95 % bootstrap interval of the median."""
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[50], medians[1949]


def measure(
    root: Path, count: int, minutes: float, seconds: float, more: list[str]
) -> dict[str, Any]:
    """Train, serve, and watch in turns."""
    runs = root / "runs"
    runs.mkdir()  # the server may be quicker than the training
    keisei = [sys.executable, "-m", "keisei"]
    settings = ["training.total_timesteps=1000000000", "evaluation.interval=1000000000"]
    settings += [f"logging.runs_dir={runs}", "evaluation.games=2", "display.live=never"]
    settings += ["training.parallel.rollout_length=32"]  # four times as many updates as usual
    settings += more
    train = [*keisei, "train", "--name", RUN, *(f"-o{setting}" for setting in settings)]
    serve = [*keisei, "serve", "--runs", str(runs), "--port", "0", "--no-open"]
    rng = random.Random(1)
    turns: dict[bool, list[dict[str, float]]] = {True: [], False: []}
    events = 0
    with (
        process(train, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as training,
        process(
            serve, stdout=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"}
        ) as server,
    ):
        assert server.stdout
        found = (re.search(r"http://\S+", line) for line in server.stdout)
        address = next(match.group() for match in found if match)
        meter = Meter(runs / RUN / "metrics.sqlite", training.pid, server.pid)
        meter.wait(2, time.monotonic() + 300)
        deadline = time.monotonic() + minutes * 60
        while time.monotonic() < deadline or not turns[True]:
            for watched in rng.sample([True, False], 2):
                watchers = Watchers(address, count if watched else 0)
                turns[watched].append(meter.measure(seconds, deadline + 300))
                watchers.stop()
                events += watchers.events
            without, with_them = turns[False][-1]["speed"], turns[True][-1]["speed"]
            print(f"{without:8.0f} -> {with_them:8.0f} steps/s", flush=True)

    def compare(what: str) -> dict[str, float]:
        pairs = zip(turns[True], turns[False], strict=True)
        ratios = [watched[what] / alone[what] for watched, alone in pairs]
        low, high = interval(ratios, rng)
        return {"ratio": statistics.median(ratios), "low": low, "high": high}

    return {
        "watchers": count,
        "pairs": len(turns[True]),
        "updates_received": events,
        "speed": compare("speed"),
        "training_cpu_per_step": compare("per_step"),
        "server_per_training_cpu": {
            name: sum(t["server"] for t in some) / sum(t["training"] for t in some)
            for name, some in (("watched", turns[True]), ("unwatched", turns[False]))
        },
    }


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--watchers", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=4.0)
    parser.add_argument("--seconds", type=float, default=15.0, help="of one turn")
    parser.add_argument("--json", type=Path)
    parser.add_argument("-o", action="append", default=[], help="a setting, as of keisei train")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        result = measure(Path(root), options.watchers, options.minutes, options.seconds, options.o)
    print(f"{result['pairs']} pairs of turns, {result['updates_received']} updates received")
    for what in ("speed", "training_cpu_per_step"):
        one = result[what]
        print(
            f"{what} with {result['watchers']} browsers / without: {one['ratio']:.3f} "
            f"(95 %: {one['low']:.3f} to {one['high']:.3f})"
        )
    cost = result["server_per_training_cpu"]
    print(
        f"processor time of the server / of the training: {cost['watched']:.2%} watched, "
        f"{cost['unwatched']:.2%} unwatched"
    )
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
