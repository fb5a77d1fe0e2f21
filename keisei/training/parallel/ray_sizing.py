"""How large a run is on a Ray cluster: its workers, and the memory for their rollouts."""

from __future__ import annotations

from typing import Any

from keisei.config_schema import AppConfig, parse_config
from keisei.core.neural_network import build_network
from keisei.processes.ray_cluster import SMALLEST_STORE, cluster_cpus
from keisei.processes.shared_memory import layout_bytes
from keisei.training.parallel.slots import slot_layout, slots_needed


def store_bytes(config: AppConfig) -> int:
    """Memory for objects that a run needs: rollouts in flight, waiting and learned; weights."""
    parallel = config.training.parallel
    # Two in flight for each worker instead of one.
    rollouts = slots_needed(parallel) + parallel.num_workers
    weights = sum(weight.numel() for weight in build_network(config.model).state_dict().values())
    need = layout_bytes(slot_layout(config, rollouts)) + 4 * weights * 4
    return max(int(1.5 * need), SMALLEST_STORE)


def fit_to_cluster(config: AppConfig) -> AppConfig:
    """With as many workers as the cluster has CPUs for, if the settings do not say how many.

    One CPU is left to the learner.
    """
    parallel = config.training.parallel
    given = parallel.model_fields_set
    changes: dict[str, Any] = {}
    if "enabled" not in given:
        changes["enabled"] = True
    if "num_workers" not in given:
        changes["num_workers"] = max(cluster_cpus() - 1, 1)
        changes |= {} if "elastic" in given else {"elastic": True}
    settings = config.model_dump(mode="json")
    settings["training"]["parallel"] |= changes
    return parse_config(settings)
