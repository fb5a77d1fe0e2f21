"""What watching costs a training: its speed with 20 browsers beside its speed with none.

    python scripts/measure_watchers.py [--watchers 20] [--minutes 4] [--json FILE]

One training runs all the time, beside one server. In turns, for so many updates each, nobody
watches, and so many clients watch as the page does: each reads the run's event stream, and asks
for its curves and details when it comes. The order of each pair of turns is drawn; the figure is
the median over pairs of (speed with watchers / speed without), with a bootstrap interval. So the
machine's other work, which changes slowly, hits both alike.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from keisei.training.metrics import MetricsReader

CURVES = ["entropy", "kl", "policy_loss", "value_loss", "game_length", "steps_per_s"]


class Watcher(threading.Thread):
    """A browser that looks at one run."""

    def __init__(self, address: str, run: str) -> None:
        super().__init__(daemon=True)
        self._address, self._run = f"{address}api/runs/{run}", run
        self.events = 0
        self.stopping = threading.Event()

    def run(self) -> None:
        """Open the page, then listen."""
        with httpx.Client(timeout=30) as client:
            client.get(self._address)
            client.get(f"{self._address}/series", params={"name": CURVES})
            with client.stream("GET", f"{self._address}/stream") as stream:
                for line in stream.iter_lines():
                    self.events += line.startswith("event:")
                    if self.stopping.is_set():
                        return


@contextmanager
def watching(address: str, run: str, count: int, seen: list[int]) -> Iterator[None]:
    """So many browsers; in processes of their own cost nothing more than in threads."""
    watchers = [Watcher(address, run) for _ in range(count)]
    for one in watchers:
        one.start()
    try:
        yield
    finally:
        for one in watchers:
            one.stopping.set()
        seen.append(sum(one.events for one in watchers))
        for one in watchers:
            one.join(30)


@contextmanager
def process(command: list[str], **options: object) -> Iterator[subprocess.Popen[str]]:
    """A process that ends with the block."""
    one = subprocess.Popen(command, text=True, **options)  # type: ignore[call-overload]
    try:
        yield one
    finally:
        one.terminate()
        try:
            one.wait(30)
        except subprocess.TimeoutExpired:
            one.kill()


def speeds(metrics: Path) -> list[tuple[int, float]]:
    """(step, steps/s) of every update so far."""
    with MetricsReader(metrics) as reader:
        return reader.series("steps_per_s")


def wait_for_updates(metrics: Path, count: int, deadline: float) -> list[float]:
    """The speeds of the next `count` updates; the first is left out, as it began before."""
    known = len(speeds(metrics)) if metrics.exists() else 0
    while time.monotonic() < deadline:
        new = speeds(metrics)[known:] if metrics.exists() else []
        if len(new) > count:
            return [speed for _, speed in new[1 : count + 1]]
        time.sleep(0.2)
    raise SystemExit("the training made too few updates in the time given")


def interval(ratios: list[float], rng: random.Random) -> tuple[float, float]:
    """The 95 % bootstrap interval of the median."""
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[50], medians[1949]


def measure(root: Path, watchers: int, minutes: float, updates: int) -> dict[str, object]:
    """Train, serve, and watch in turns."""
    run, runs = "measured", root / "runs"
    metrics = runs / run / "metrics.sqlite"
    keisei = [sys.executable, "-m", "keisei"]
    settings = ["training.total_timesteps=1000000000", "evaluation.interval=1000000000"]
    settings += ["training.parallel.rollout_length=32", f"logging.runs_dir={runs}"]
    settings += ["evaluation.games=2", "display.live=never"]
    train = [*keisei, "train", "--name", run, *(f"-o{setting}" for setting in settings)]
    serve = [*keisei, "serve", "--runs", str(runs), "--port", "0", "--no-open"]
    rng, ratios, seen = random.Random(1), [], []
    deadline = time.monotonic() + minutes * 60
    quiet = {**os.environ, "OMP_NUM_THREADS": "1"}
    with (
        process(train, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL),
        process(serve, stdout=subprocess.PIPE, env=quiet) as server,
    ):
        address = next(filter(None, (re.search(r"http://\S+", line) for line in server.stdout)))
        wait_for_updates(metrics, 2, deadline)
        with watching(address.group(), run, watchers, []):  # networks and caches are warm
            wait_for_updates(metrics, 2, deadline)
        while time.monotonic() < deadline - 20:
            pair = {}
            for watched in rng.sample([True, False], 2):
                with watching(address.group(), run, watchers if watched else 0, seen):
                    # By the harmonic mean: steps over time.
                    pair[watched] = statistics.harmonic_mean(
                        wait_for_updates(metrics, updates, deadline + 60)
                    )
            ratios.append(pair[True] / pair[False])
            print(f"{pair[False]:8.0f} -> {pair[True]:8.0f} steps/s: {ratios[-1]:.3f}", flush=True)
    low, high = interval(ratios, rng)
    return {
        "watchers": watchers,
        "pairs": len(ratios),
        "ratio": statistics.median(ratios),
        "low": low,
        "high": high,
        "events_received": sum(seen),
    }


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--watchers", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=4.0)
    parser.add_argument("--updates", type=int, default=3, help="of one turn")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        result = measure(Path(root), options.watchers, options.minutes, options.updates)
    print(
        f"speed with {result['watchers']} browsers / without: {result['ratio']:.3f} "
        f"(95 %: {result['low']:.3f} to {result['high']:.3f}; {result['pairs']} pairs, "
        f"{result['events_received']} events)"
    )
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
