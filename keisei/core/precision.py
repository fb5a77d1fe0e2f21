"""The arithmetic that a network plays and learns in: float32, or bfloat16 where that is faster.

Weights are always learned in float32. In bfloat16 a copy of them plays, and the learner runs its
layers in bfloat16 (autocast) around float32 weights.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import signal
import time
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

from keisei.config_schema import AppConfig, ModelConfig
from keisei.core.neural_network import ActorCriticResTower, build_network
from keisei.errors import KeiseiError
from keisei.files import replace_file
from keisei.processes.pool import ProcessPool
from keisei.shogi.features import OBSERVATION_BYTES

log = logging.getLogger(__name__)

Network = TypeVar("Network", bound=nn.Module)

_LEAST_GAIN = 1.1  # below it, float32 is worth more than the time
_MEASURE_TIMEOUT = 20  # seconds; the measurement itself takes 2


def in_precision(network: Network, precision: str) -> Network:
    """The network, cast to play in this precision."""
    return network.bfloat16() if precision == "bfloat16" else network


def acting_network(config: AppConfig) -> ActorCriticResTower:
    """A network for whoever plays by these settings; its weights are yet to come."""
    return in_precision(build_network(config.model), config.training.precision)


def autocast(device: torch.device, precision: str) -> Any:
    """Run layers in this precision for the time of a `with` block; the weights stay float32."""
    if precision == "bfloat16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()


def resolve_precision(config: AppConfig, device: torch.device) -> AppConfig:
    """The settings with `auto` replaced by what is faster on this machine."""
    wanted = config.training.precision
    if wanted == "bfloat16" and device.type == "cpu" and not _is_native():
        log.warning(
            "training.precision is bfloat16, which this processor only emulates, slowly; "
            "-o training.precision=float32 is faster here"
        )
    if wanted != "auto":
        return config
    config = config.model_copy(deep=True)
    if device.type == "cuda":
        fast = torch.cuda.is_bf16_supported()
    else:
        fast = _is_native() and _gain(config.model) >= _LEAST_GAIN
    config.training.precision = "bfloat16" if fast else "float32"
    return config


def _is_native() -> bool:
    """Can the processor multiply bfloat16 itself? Others emulate it, and may take minutes."""
    able = torch.cpu.get_capabilities()
    return bool(able.get("avx512_bf16") or able.get("amx_bf16") or able.get("bf16"))


def _gain(model: ModelConfig) -> float:
    """How much faster bfloat16 is here: measured once, and remembered for the machine."""
    file = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "keisei/precision.json"
    processor = torch.cpu.get_capabilities().get("cpu_name", platform.processor())
    key = f"{processor}, PyTorch {torch.__version__}, {model.model_dump_json()}"
    known: dict[str, float] = {}
    with suppress(OSError, ValueError):
        known = dict(json.loads(file.read_text()))
    if key not in known:
        known[key] = _measure_apart(model)
        with suppress(OSError):  # a home that cannot be written costs a measurement each time
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(file, json.dumps(known, indent=1).encode())
    return known[key]


def _measure_apart(model: ModelConfig) -> float:
    """In a process of its own: some machines claim bfloat16 and crash."""
    pool: ProcessPool[int, float] = ProcessPool(measure_gain, 1)
    try:
        pool.submit(0, model)
        return next(gain for _, gain in pool.finished(wait_for_all=True))
    except KeiseiError as error:
        log.warning("bfloat16 could not be tried, so float32 is used: %s", error)
        return 0.0
    finally:
        pool.close()


def measure_gain(model: ModelConfig, batch: int = 64, seconds: float = 2.0) -> float:
    """How many forward passes in bfloat16 fit into one in float32, on one thread.

    For a process of its own, which ends if that takes too long.
    """
    signal.alarm(_MEASURE_TIMEOUT)
    torch.set_num_threads(1)
    networks = [in_precision(build_network(model), name) for name in ("float32", "bfloat16")]
    best = [float("inf")] * 2
    end = time.perf_counter() + seconds
    with torch.inference_mode():
        while time.perf_counter() < end:
            for which, network in enumerate(networks):
                planes = network.planes(np.zeros((batch, OBSERVATION_BYTES), np.uint8))
                start = time.perf_counter()
                network(planes)
                best[which] = min(best[which], time.perf_counter() - start)
    signal.alarm(0)
    return best[0] / best[1]


def plays_in(network: ActorCriticResTower, wanted: str) -> ActorCriticResTower:
    """A trained network as it plays here: in its run's precision where the processor has it."""
    return in_precision(network, wanted) if wanted == "bfloat16" and _is_native() else network
