"""How fast are Keisei's worlds beside SocialJax and Sorrel? Turns per second of processor time.

    python benchmarks/peers/worlds_speed.py --socialjax DIR --sorrel DIR

DIR are clones of both, which are not on PyPI; they run in .venv-peers/socialjax and
.venv-peers/sorrel. Everything runs on one core, in processes of their own, in turns. Writes
worlds_speed.json beside this file, and prints a table as Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from measure import pin_to_one_core, publish

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# The size of SocialJax's Clean Up: map, window, agents and turns; agents face somewhere and zap.
CLEANUP = "num_agents: 7, facing: true, height: 20, width: 30, vision: 5, max_turns: 1000"
HUNT = "num_agents: 2, height: 21, width: 21, max_turns: 100"
# What Keisei is measured with: the world, its kind of agent, and more settings.
OURS: dict[str, tuple[str, str, list[str]]] = {
    "cleanup mlp": ("cleanup", "ppo", [f"world_settings={{{CLEANUP}}}"]),
    "cleanup cnn": ("cleanup", "ppo", [f"world_settings={{{CLEANUP}}}", "ppo.network=cnn"]),
    "hunt 2 iqn": ("treasure_hunt", "iqn", [f"world_settings={{{HUNT}, vision: 2}}"]),
    "hunt 4 iqn": ("treasure_hunt", "iqn", [f"world_settings={{{HUNT}, vision: 4}}"]),
    "hunt 4": ("treasure_hunt", "double_dqn", [f"world_settings={{{HUNT}, vision: 4}}"]),
}
# A row of the table: what is compared, Keisei's name for it, its peer and the peer's arguments.
ROWS = (
    ("Clean Up, 7 agents, plain layers", "cleanup mlp", "socialjax", ["--network", "mlp"]),
    ("Clean Up, 7 agents, each side's filters", "cleanup cnn", "socialjax", ["--network", "cnn"]),
    ("treasure hunt, IQN, 5 x 5 cells seen", "hunt 2 iqn", "sorrel", ["--radius", "2"]),
    ("treasure hunt, IQN, 9 x 9 cells seen", "hunt 4 iqn", "sorrel", ["--radius", "4"]),
    ("treasure hunt, double DQN, 9 x 9 cells seen", "hunt 4", "sorrel", ["--radius", "4"]),
)


def keisei(name: str, copies: int, seconds: float) -> None:
    """Measure Keisei alone, in this process."""
    pin_to_one_core()
    import torch

    from keisei.processes.machine import keep_freed_memory
    from keisei.worlds import make_environment

    torch.set_num_threads(1)
    keep_freed_memory()
    world, kind, settings = OURS[name]
    if kind != "ppo":
        settings = [*settings, f"{kind}.epsilon_start=0.05"]  # networks act, not chance
    overrides = [*settings, f"agents=[{kind}]", f"copies={copies}", "parallel.num_workers=1"]
    rates = {}
    with make_environment(world, overrides) as environment:
        environment.world.reset()
        for _ in range(20):
            environment.next_turn()
        turns, start = 0, time.process_time()
        while (spent := time.process_time() - start) < seconds:
            environment.next_turn()
            turns += copies
        rates["acting"] = turns / spent
    if world == "treasure_hunt":
        with make_environment(world, overrides) as environment:
            environment.run_experiment(2)  # it learns from the second epoch on at the latest
            turns, start = 0, time.process_time()
            while (spent := time.process_time() - start) < seconds:
                environment.run_epoch()
                turns += copies * environment.world.max_turns
            rates["learning"] = turns / spent
    publish(rates, f"{copies} copies", {"torch": torch.__version__})


def measured(python: Path, script: str, words: list[str], folder: Path | None) -> dict[str, float]:
    """What a script says in a process of its own, with the peer's clone in its path."""
    path = [str(ROOT), *([str(folder)] if folder else [])]
    done = subprocess.run(
        [str(python), str(HERE / script), *words],
        capture_output=True,
        text=True,
        timeout=1800,
        cwd="/",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1"},
    )
    if done.returncode:
        raise SystemExit(f"{script} failed: {done.stderr.strip().splitlines()[-1]}")
    rates: dict[str, float] = json.loads(done.stdout.splitlines()[-1])["rates"]
    return rates


def compare(options: argparse.Namespace) -> None:
    """All rows whose peer is there, in turns, and a table of the medians and paired ratios."""
    folders = {"socialjax": options.socialjax, "sorrel": options.sorrel}
    seconds = ["--seconds", str(options.seconds)]
    results: dict[str, list[dict[str, float]]] = {}
    for number in range(options.rounds):
        for title, ours, peer, words in ROWS:
            if folders[peer] is None or (options.only and ours not in options.only):
                continue
            own = ["--measure", ours, "--copies", str(options.copies), *seconds]
            mine = measured(Path(sys.executable), "worlds_speed.py", own, None)
            python = ROOT / ".venv-peers" / peer / "bin" / "python"
            theirs = measured(python, f"{peer}_worlds.py", [*words, *seconds], folders[peer])
            for what in theirs:
                pair = {
                    "keisei": mine[what],
                    peer: theirs[what],
                    "ratio": mine[what] / theirs[what],
                }
                results.setdefault(f"{title}, {what}", []).append(pair)
                print(f"round {number + 1}: {title}, {what}: {pair}", flush=True)
    if not options.only:
        (HERE / "worlds_speed.json").write_text(json.dumps(results, indent=2) + "\n")
    print("\n| turns per processor second | Keisei | peer | times as fast |\n|---|---|---|---|")
    for title, pairs in results.items():
        ratios = [pair["ratio"] for pair in pairs]
        mine, theirs = (statistics.median(list(pair.values())[i] for pair in pairs) for i in (0, 1))
        spread = f"{min(ratios):.0f} to {max(ratios):.0f}"
        peer = list(pairs[0])[1]
        times = f"{statistics.median(ratios):.1f} ({spread})"
        print(f"| {title} | {mine:,.0f} | {peer} {theirs:,.0f} | {times} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--measure", choices=list(OURS), help="measure Keisei in this alone")
    parser.add_argument("--socialjax", type=Path, help="a clone of SocialJax")
    parser.add_argument("--sorrel", type=Path, help="a clone of Sorrel")
    parser.add_argument("--only", nargs="*", choices=list(OURS), help="just these of Keisei's")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10, help="of processor time, for each")
    parser.add_argument("--copies", type=int, default=128)
    options = parser.parse_args()
    if options.measure:
        keisei(options.measure, options.copies, options.seconds)
    else:
        compare(options)


if __name__ == "__main__":
    main()
