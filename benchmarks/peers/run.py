"""Keisei beside other systems: `python benchmarks/peers/run.py` (after `make peers`).

Each measurement is a process of its own, in the contender's own environment, one at a time; all
contenders take their turn in every round. Prints the table of docs/performance.md as Markdown,
writes results.json beside this file and draws docs/images/peers.png. A measurement of a few
(`--only`) leaves those two files as they are.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keisei.benchmarks.report import machine, median_ratio
from keisei.processes.other_load import OtherLoad

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PICTURE = ROOT / "docs" / "images" / "peers.png"
FIGURES = {"collect": "collecting", "train": "whole training", "env": "environment alone"}
Rates = dict[str, list[float]]


@dataclass
class Contender:
    """A script, the environment that it runs in ("" is the one of this process), what it gives."""

    label: str
    script: str
    venv: str = ""
    seconds: float = 8.0
    options: tuple[str, ...] = ()
    precision: str = "float32"
    rates: Rates = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    error: str = ""

    def python(self) -> Path:
        return ROOT / ".venv-peers" / self.venv / "bin" / "python" if self.venv else _me()

    def measure(self, timeout: float) -> None:
        """Run the script once and keep its figures, or the last line of what went wrong."""
        script = [str(HERE / self.script), "--seconds", str(self.seconds), *self.options]
        if not self.python().exists():
            self.error = f"no environment {self.venv}: run `make peers`"
            return
        # Waiting threads must not spin for long where others need the core; the same for all.
        environment = {"GOMP_SPINCOUNT": "10000", **os.environ, "PYTHONPATH": str(ROOT)}
        environment["PRECISION"] = self.precision
        with session([str(self.python()), *script], env=environment) as process:
            try:
                output, _ = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                self.error = f"no figures after {timeout:.0f} s"
                return
        self._keep(output.splitlines())

    def _keep(self, lines: list[str]) -> None:
        figures = [line for line in lines if line.startswith('{"rates"')]
        if not figures:
            self.error = next((line for line in reversed(lines) if line.strip()), "no output")
            return
        result = json.loads(figures[-1])
        for name, rate in result.pop("rates").items():
            self.rates.setdefault(name, []).append(rate)
        self.about = result


def _me() -> Path:
    return Path(sys.executable)


@contextlib.contextmanager
def session(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process in a session of its own, which is ended with the block.

    A SIGTERM that comes while it starts waits until it is known: else nobody would end it.
    """
    asked: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    process = None
    try:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            **options,
        )
        signal.signal(signal.SIGTERM, before)
        if asked:
            os.kill(os.getpid(), signal.SIGTERM)
        yield process
    finally:
        signal.signal(signal.SIGTERM, before)
        if process:
            end_session(process.pid)
            process.wait(timeout=30)


def end_session(leader: int) -> None:
    """End whatever a measurement left running: the processes of its own session, no others."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


def end_with_contenders() -> None:
    """On SIGTERM leave as on Ctrl-C, by way of what ends the contender that is running."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def load_of_others(seconds: float = 1.0) -> float:
    """Cores that other programs use now, while no contender runs.

    Not looked at during a measurement, because some contenders' processes outlive their parents
    and cannot be told from others.
    """
    others = OtherLoad()
    time.sleep(seconds)
    return others.look()


def contenders() -> list[Contender]:
    peers = [
        ("Stable-Baselines3", "sb3_ppo.py", "sb3", ("--envs", "dummy")),
        ("Stable-Baselines3 over `VectorShogi`", "sb3_ppo.py", "sb3", ()),
        ("RLlib PPO", "rllib_ppo.py", "rllib", ()),
        ("Sample Factory APPO", "sample_factory_ppo.py", "sample_factory", ()),
        ("plain loop after CleanRL", "cleanrl_ppo.py", "", ()),
    ]
    found = [
        Contender("Keisei", "keisei_ppo.py", precision="bfloat16"),
        Contender("Keisei in float32", "keisei_ppo.py"),
    ]
    for label, script, venv, options in peers:
        found += [
            Contender(label, script, venv, options=options),
            Contender(f"{label} in bfloat16", script, venv, options=options, precision="bfloat16"),
        ]
    return [
        *found,
        Contender("Keisei `VectorShogi`", "keisei_env.py", seconds=6),
        Contender("Pgx", "pgx_env.py", "pgx", seconds=3),
        Contender("OpenSpiel", "openspiel_env.py", "openspiel", seconds=3),
    ]


def rows(found: list[Contender], figure: str) -> list[tuple[str, list[float], float | None]]:
    """Label, rates and how many times as fast Keisei was, of all who have this figure."""
    having = [
        (peer.label + how, rates)
        for peer in found
        for name, how in ((figure, ""), *_ways(figure))
        if (rates := peer.rates.get(name))
    ]
    if not having:
        return []
    own = having[0][1] if having[0][0].startswith("Keisei") else []
    return [(label, rates, _times(own, rates)) for label, rates in having]


def _ways(figure: str) -> list[tuple[str, str]]:
    """The ways to observe that one script measured under names of their own."""
    if figure != "env":
        return []
    return [
        ("list", ", `observation_tensor()` as a list, one game"),
        ("array", ", `make_observation()` into an array, one game"),
        ("batch", ", `make_observation()`, 256 games into one array"),
    ]


def _times(own: list[float], other: list[float]) -> float | None:
    """By rounds where both have all of them, else by medians."""
    if not own:
        return None
    if len(own) == len(other):
        return median_ratio({"own": own, "other": other}, "own", "other")
    return statistics.median(own) / statistics.median(other)


def markdown(found: list[Contender]) -> str:
    """The table of docs/performance.md."""
    lines = ["| | steps/s (median) | spread | Keisei is faster |", "|---|---|---|---|"]
    for figure, title in FIGURES.items():
        lines.append(f"| **{title}** | | | |")
        for label, rates, times in rows(found, figure):
            spread = f"{min(rates):,.0f} to {max(rates):,.0f}"
            ratio = f"{times:.1f} times" if times and not label.startswith("Keisei") else ""
            lines.append(f"| {label} | {statistics.median(rates):,.0f} | {spread} | {ratio} |")
    lines += [f"| {peer.label} | failed: {peer.error} | | |" for peer in found if peer.error]
    return "\n".join(lines)


def draw(found: list[Contender], file: Path) -> None:
    """Medians as bars with the spread, a panel for each figure."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(3, 1, figsize=(9, 8), layout="constrained")
    for panel, (name, title) in zip(panels, FIGURES.items(), strict=True):
        bars = rows(found, name)[::-1]
        middle = [statistics.median(rates) for _, rates, _ in bars]
        below = [m - min(rates) for m, (_, rates, _) in zip(middle, bars, strict=True)]
        above = [max(rates) - m for m, (_, rates, _) in zip(middle, bars, strict=True)]
        colors = ["#c0392b" if label.startswith("Keisei") else "#7f8c8d" for label, _, _ in bars]
        labels = [label.replace("`", "").replace(", ", ",\n", 1) for label, _, _ in bars]
        panel.barh(labels, middle, xerr=[below, above], color=colors, capsize=3)
        cores = "one core" if name == "env" else "two cores"
        panel.set_title(f"{title}, {cores}, steps/s", loc="left", fontsize=10)
        panel.tick_params(labelsize=8)
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=110)
    pyplot.close(figure)


def write(found: list[Contender], rounds: int, others: list[float], file: Path) -> None:
    """Everything that was measured, as JSON."""
    result = {
        "rounds": rounds,
        "cores_used_by_other_programs": [round(cores, 2) for cores in others],
        "contenders": {
            peer.label: {
                **peer.about,
                "steps_per_s": {
                    name: {
                        "median": statistics.median(rates),
                        "min": min(rates),
                        "max": max(rates),
                        "rounds": rates,
                    }
                    for name, rates in peer.rates.items()
                },
                **({"error": peer.error} if peer.error else {}),
            }
            for peer in found
        },
        "machine": machine(),
    }
    file.write_text(json.dumps(result, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, help="of each figure (default 8, or 3 to 6)")
    parser.add_argument("--only", nargs="+", metavar="SCRIPT", help="e.g. keisei_ppo sb3_ppo")
    parser.add_argument("--timeout", type=float, default=300.0, help="of one measurement, seconds")
    options = parser.parse_args()
    end_with_contenders()
    found = [peer for peer in contenders() if not options.only or peer.script[:-3] in options.only]
    others = []
    for number in range(options.rounds):
        for peer in found:
            peer.seconds = options.seconds or peer.seconds
            others.append(load_of_others())
            start = time.perf_counter()
            peer.measure(options.timeout)
            took = time.perf_counter() - start
            said = peer.error or {name: round(values[-1]) for name, values in peer.rates.items()}
            print(f"round {number + 1}, {took:3.0f} s, {peer.label}: {said}", flush=True)
    if not options.only:
        write(found, options.rounds, others, HERE / "results.json")
        draw(found, PICTURE)
    print(f"\nother programs took {statistics.mean(others):.2f} cores, {max(others):.2f} at most")
    print(f"\n{markdown(found)}")


if __name__ == "__main__":
    main()
