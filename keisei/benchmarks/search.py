"""`keisei benchmark search`: nodes per second of the tree search beside the network alone."""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from keisei.benchmarks.report import interleave, median_ratio, publish
from keisei.config_schema import load_config
from keisei.core.neural_network import ActorCriticResTower
from keisei.core.policy import evaluate
from keisei.core.ppo_agent import PPOAgent
from keisei.core.precision import in_precision
from keisei.search import Limit, Search, SearchSettings, Tree
from keisei.shogi import ShogiGame, VectorShogi

TREES, LEAVES_OF_MANY = 32, 8  # as in a match
BATCH = 64  # what the network is measured with, as in `keisei benchmark collect`


def network_alone(network: ActorCriticResTower, batch: int, positions: int) -> Callable[[], int]:
    """Forward passes over ready-made planes in batches of one size: the limit of any search."""
    planes = network.planes(_middle_games(batch).observations)
    rounds = max(positions // batch, 1)

    def run() -> int:
        with torch.inference_mode():
            for _ in range(rounds):
                network(planes)
        return rounds * batch

    return run


def tree_search(
    network: ActorCriticResTower, trees: int, leaves: int, nodes: int
) -> Callable[[], int]:
    """New trees from the middle of games; only positions that the network evaluated count."""
    boards = _middle_games(trees)
    games = [ShogiGame.from_moves(*boards.moves_of(row), move_limit=None) for row in range(trees)]

    def run() -> int:
        search = Search(partial(evaluate, network), SearchSettings(leaves=leaves))
        search.run([Tree(game) for game in games], Limit(nodes))
        return search.evaluated

    return run


def _middle_games(count: int) -> VectorShogi:
    games = VectorShogi(count, seed=1)
    for _ in range(40):
        games.step(games.random_actions())
    return games


def contenders_of(preset: str, precision: str, nodes: int) -> dict[str, Callable[[], int]]:
    """What is measured."""
    plain = PPOAgent(load_config(overrides=[f"model.preset={preset}"]), "cpu").network
    network = in_precision(copy.deepcopy(plain), precision)
    leaves, many_nodes = SearchSettings().leaves, max(nodes // TREES, 1)
    contenders = {
        "network": network_alone(network, BATCH, nodes),
        "network, small batch": network_alone(network, leaves, nodes),
        "one tree": tree_search(network, 1, leaves, nodes),
        "many trees": tree_search(network, TREES, LEAVES_OF_MANY, many_nodes),
    }
    if precision != "float32":
        contenders["float32"] = tree_search(plain, TREES, LEAVES_OF_MANY, many_nodes)
    return contenders


def run(
    json_file: Path | None = None,
    preset: str = "tiny",
    rounds: int = 7,
    nodes: int = 1600,
    precision: str = "float32",
) -> None:
    """Measure on one core, print a table, write JSON; another precision beside float32."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        contenders = contenders_of(preset, precision, nodes)
        interleave(contenders, 1)  # the first calls set up PyTorch's kernels
        rates = interleave(contenders, rounds)
    finally:
        torch.set_num_threads(threads)
    speed = {name: statistics.median(values) for name, values in rates.items()}
    one, many = (median_ratio(rates, name, "network") for name in ("one tree", "many trees"))
    like = median_ratio(rates, "one tree", "network, small batch")
    leaves = SearchSettings().leaves
    rows = [
        (f"network {preset} alone, batches of {BATCH}", f"{speed['network']:,.0f} positions/s"),
        (
            f"network alone, batches of {leaves}",
            f"{speed['network, small batch']:,.0f} positions/s",
        ),
        (
            f"one tree, {leaves} leaves a batch",
            f"{speed['one tree']:,.0f} nodes/s  ({one:.2f}; {like:.2f} of the same batches)",
        ),
        (
            f"{TREES} trees, {LEAVES_OF_MANY} leaves each",
            f"{speed['many trees']:,.0f} nodes/s  ({many:.2f})",
        ),
    ]
    result: dict[str, object] = {
        "preset": preset,
        "precision": precision,
        "nodes": nodes,
        "per_s": speed,
        "ratio_one_tree": one,
        "ratio_one_tree_same_batch": like,
        "ratio_many_trees": many,
    }
    if precision != "float32":
        gain = median_ratio(rates, "many trees", "float32")
        rows.append((f"{TREES} trees beside float32", f"{gain:.2f} times as fast"))
        result["ratio_to_float32"] = gain
    publish("Tree search, one core", rows, result, json_file)
