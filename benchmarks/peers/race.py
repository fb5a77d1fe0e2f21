"""Who plays well first: `python benchmarks/peers/race.py` (after `make peers`).

Each contender trains `tiny` from nothing on Keisei's game and rewards, with its own learner, in a
process of its own, one at a time, on two cores. About every five seconds it shows its weights and
waits while they play a match here; the clock stands meanwhile. The race is over at the goal, or
after half an hour. Writes race.json beside this file and prints a table as Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import IO, Any

import common
import torch
from run import HERE, ROOT, end_session, end_with_contenders, session

from keisei.benchmarks.report import machine
from keisei.config_schema import PRESETS
from keisei.core.neural_network import ActorCriticResTower
from keisei.core.policy import evaluate
from keisei.evaluation.match import play_games
from keisei.evaluation.openings import load_openings
from keisei.evaluation.players import GreedyPlayer, PolicyPlayer, RandomPlayer

GAMES = 100
TEMPERATURE = 0.5
OPPONENTS = {"random": RandomPlayer, "greedy": GreedyPlayer}
ONE_PLAYER = ("--discount", str(common.GAMMA))
# By label: the environment ("" is the one of this process) and the command.
CONTENDERS = {
    "Keisei, `keisei train`": ("", ["keisei_race.py"]),
    "Keisei, `-c quick`": ("", ["keisei_race.py", "--config", "quick"]),
    "plain loop after CleanRL": ("", ["cleanrl_ppo.py"]),
    "the same, all steps one player's": ("", ["cleanrl_ppo.py", *ONE_PLAYER]),
    "Stable-Baselines3 over `VectorShogi`": ("sb3", ["sb3_ppo.py"]),
    "Stable-Baselines3, all steps one player's": ("sb3", ["sb3_ppo.py", *ONE_PLAYER]),
    "RLlib PPO": ("rllib", ["rllib_ppo.py"]),
    "Sample Factory APPO": ("sample_factory", ["sample_factory_ppo.py"]),
    "Sample Factory, all steps one player's": (
        "sample_factory",
        ["sample_factory_ppo.py", *ONE_PLAYER],
    ),
}


def score(weights: Path, opponent: str) -> float:
    """The share of points that a policy with these weights gets."""
    network = ActorCriticResTower(*PRESETS["tiny"], planes="core46")
    network.load_state_dict(torch.load(weights, weights_only=True))
    player = PolicyPlayer(partial(evaluate, network.eval()), "me", 1, TEMPERATURE)
    rival = OPPONENTS[opponent](2)
    result = play_games(player, rival, GAMES, openings=load_openings())
    return (result.wins + result.draws / 2) / result.played


def race(venv: str, command: list[str], goals: dict[str, float], limit: float) -> dict[str, Any]:
    """Seconds and steps at each goal, and what was seen on the way."""
    python = str(ROOT / ".venv-peers" / venv / "bin" / "python") if venv else sys.executable
    with tempfile.TemporaryDirectory() as folder:
        script = [python, str(HERE / command[0]), *command[1:], "--race", folder]
        environment = {
            "GOMP_SPINCOUNT": "10000",
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "ROLLOUT": "128",
            "RACE_SECONDS": str(limit),
        }
        with session(script, stdin=subprocess.PIPE, cwd=folder, env=environment) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            patience = threading.Timer(2 * limit + 600, end_session, [process.pid])
            patience.start()
            try:
                return _follow(process.stdin, process.stdout, goals, limit)
            finally:
                patience.cancel()


def _follow(
    answer: IO[str], shown: IO[str], goals: dict[str, float], limit: float
) -> dict[str, Any]:
    start, stood = time.perf_counter(), 0.0
    reached: dict[str, Any] = {}
    curve: list[dict[str, float]] = []
    said = "no output"
    for line in shown:
        if not line.startswith('{"weights"'):
            said = line.strip() or said
            continue
        stopped = time.perf_counter()
        step = json.loads(line)
        seconds = step.get("seconds", stopped - start - stood)
        point = {"seconds": round(seconds, 1), "steps": step["steps"]}
        for opponent, goal in goals.items():
            if opponent not in reached:
                point[opponent] = score(Path(step["weights"]), opponent)
                if point[opponent] >= goal:
                    reached[opponent] = {"seconds": point["seconds"], "steps": step["steps"]}
        curve.append(point)
        print(f"  {point}", flush=True)
        if len(reached) == len(goals) or seconds >= limit:
            break
        stood += time.perf_counter() - stopped
        answer.write("on\n")
        answer.flush()
    else:  # it should have waited for an answer
        return {"reached": reached, "curve": curve, "error": said}
    return {"reached": reached, "curve": curve}


def markdown(results: dict[str, dict[str, Any]], goals: dict[str, float]) -> str:
    """A row for each contender."""
    titles = [f"{goal:.0%} against {opponent}" for opponent, goal in goals.items()]
    lines = ["| | " + " | ".join(titles) + " |", "|---|" + "---|" * len(goals)]
    for label, result in results.items():
        cells = [_cell(result, opponent) for opponent in goals]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(result: dict[str, Any], opponent: str) -> str:
    reached = result["reached"].get(opponent)
    if reached:
        return f"{reached['seconds']:.0f} s, {reached['steps']:,} moves"
    if "error" in result:
        return f"failed: {result['error']}"
    last = result["curve"][-1]
    return f"not within {last['seconds']:.0f} s: {last[opponent]:.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="WORD", default=[""], help="in the label")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--greedy", action="store_true", help="also until 50 %% against greedy")
    parser.add_argument("--json", type=Path, default=HERE / "race.json")
    options = parser.parse_args()
    end_with_contenders()
    goals = {"random": 0.95} | ({"greedy": 0.5} if options.greedy else {})
    results = {}
    for label, (venv, command) in CONTENDERS.items():
        if any(word in label for word in options.only):
            print(label, flush=True)
            results[label] = race(venv, command, goals, 60 * options.minutes)
    report = {"results": results, "goals": goals, "machine": machine()}
    options.json.write_text(json.dumps(report, indent=2) + "\n")
    print(f"\n{markdown(results, goals)}")


if __name__ == "__main__":
    main()
