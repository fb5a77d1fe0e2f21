"""Running a network on a CPU: what makes it faster without changing a bit of its answers."""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from keisei.core.neural_network import ActorCriticResTower
from keisei.processes.machine import cores
from keisei.shogi.features import OBSERVATION_BYTES

_THREADS = torch.get_num_threads()

Forward = Callable[[Tensor], tuple[Tensor, Tensor]]
Part = TypeVar("Part")
Result = TypeVar("Result")


def share_cores(busy: int) -> None:
    """Leave cores to this many other processes that are always busy; keep at least one thread.

    >>> share_cores(cores())
    >>> torch.get_num_threads()
    1
    >>> share_cores(0)  # as many as at the start
    """
    torch.set_num_threads(max(1, min(_THREADS, cores() - busy)))


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Use one PyTorch thread, as workers do: with more, sums differ in their last bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


_second_thread = ThreadPoolExecutor(1)


def _new_second_thread() -> None:
    global _second_thread
    _second_thread = ThreadPoolExecutor(1)


# A forked process has only the thread that forked it: what others were to do would never be done.
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_new_second_thread)


@contextlib.contextmanager
def side_by_side() -> Iterator[Callable[[Callable[[Part], Result], Sequence[Part]], list[Result]]]:
    """Two threads that each do half of the work, for the time of a `with` block.

    Each has half of PyTorch's threads. That beats two that wait for each other in every layer, and
    does not stand still when another program takes one of two cores.

    >>> with side_by_side() as compute:
    ...     compute(abs, [-1, -2])
    [1, 2]
    """
    threads = torch.get_num_threads()
    half = max(threads // 2, 1)

    def on_half(compute: Callable[[Part], Result], part: Part) -> Result:
        torch.set_num_threads(half)  # of the calling thread
        return compute(part)

    def both(compute: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
        first, second = parts
        later = _second_thread.submit(on_half, compute, second)
        return [on_half(compute, first), later.result()]

    try:
        yield both
    finally:
        torch.set_num_threads(threads)


def traced(network: ActorCriticResTower, batch_size: int) -> Forward:
    """The network without its Python: the same kernels on the same weights, now and later.

    Its answers are the network's, bit for bit, and weights that are copied into the network later
    are used. (Freezing the weights or OpenVINO would gain a few percent more, but must be set up
    again for every version, which takes longer than it saves: docs/performance.md.) What a future
    PyTorch refuses to trace runs as it is.
    """
    planes = network.planes(np.zeros((batch_size, OBSERVATION_BYTES), np.uint8))
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tracing is deprecated, but nothing else does this
        try:
            module: Forward = torch.jit.trace(  # type: ignore[no-untyped-call]
                network, planes, check_trace=False
            )
            for _ in range(2):  # it optimises itself in its first calls
                module(planes)
        except Exception:
            return network
    return module


def tracing_pays(network: ActorCriticResTower, batch_size: int, seconds: float = 0.5) -> bool:
    """Is the traced network faster here? Measured in 20 rounds or `seconds`, on one thread."""
    with one_thread():
        return _is_traced_faster(network, batch_size, seconds)


def _is_traced_faster(network: ActorCriticResTower, batch_size: int, seconds: float) -> bool:
    forms: list[Forward] = [network, traced(network, batch_size)]
    planes = network.planes(np.zeros((batch_size, OBSERVATION_BYTES), np.uint8))
    best = [float("inf"), float("inf")]
    end = time.perf_counter() + seconds
    with torch.inference_mode():
        for _ in range(20):
            for i, form in enumerate(forms):
                start = time.perf_counter()
                form(planes)
                best[i] = min(best[i], time.perf_counter() - start)
            if time.perf_counter() > end:
                break
    return best[1] < best[0]
