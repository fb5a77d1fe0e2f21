"""The Ray cluster of a run: one that is joined, or one of this machine alone for the run's time."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from keisei.errors import KeiseiError
from keisei.processes.machine import cores
from keisei.processes.ray_reaper import end_with_this_process, start_reaper

CONNECT_TIMEOUT = 5.0
SMALLEST_STORE = 80 * 2**20  # less is refused by Ray


class ClusterError(KeiseiError):
    """Ray or its cluster cannot be used; the message says what to install or check."""


def import_ray() -> Any:
    """The library, or a line that says how to get it."""
    # Reports to Ray's makers are for those who ask for them.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # Ray warns without it
    # A cluster that was started where there is a token wants it; Ray reads this as it is loaded.
    if "ray" not in sys.modules and (Path.home() / ".ray" / "auth_token").is_file():
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    try:
        import ray
    except ImportError:
        raise ClusterError("Ray is not installed: pip install 'ray==2.60.*' grpcio") from None
    return ray


@contextlib.contextmanager
def cluster(address: str, store_bytes: int | None = None) -> Iterator[None]:
    """Be connected to the cluster at `address`; what this process started is ended with it.

    `auto` is the cluster that RAY_ADDRESS names or that `ray start` made this machine a part of,
    and without one a cluster of this machine alone, with `store_bytes` of memory for objects.
    """
    ray = import_ray()
    if ray.is_initialized():  # whatever connected will disconnect
        yield
        return
    reaper = None
    try:
        if address != "auto":
            _check_reachable(address)
        running = _find_running() if address == "auto" else address
        if running:
            _init(ray, address=running)
        else:
            reaper = _start_own(ray, store_bytes)
        yield
    finally:
        ray.shutdown()
        if reaper is not None:
            _end_reaper(reaper)


def _find_running() -> str | None:
    """The address of a cluster that is meant to be joined.

    Ray's own "auto" also takes what another program has started for itself, and goes down with it.
    """
    from ray._private.utils import read_ray_address

    if named := os.environ.get("RAY_ADDRESS"):
        return named
    if noted := read_ray_address():
        with contextlib.suppress(ClusterError):  # a cluster that was killed has left its note
            _check_reachable(noted)
            return noted
    return None


def _start_own(ray: Any, store_bytes: int | None) -> subprocess.Popen[bytes]:
    others = psutil.Process().children()
    reaper = start_reaper()
    try:
        _init(
            ray,
            address="local",
            num_cpus=cores(),
            include_dashboard=False,
            object_store_memory=store_bytes,
        )
        end_with_this_process(reaper, others)
    except BaseException:
        _end_reaper(reaper)
        raise
    return reaper


def _end_reaper(reaper: subprocess.Popen[bytes]) -> None:
    assert reaper.stdin is not None
    reaper.stdin.close()
    try:
        reaper.wait(timeout=10)
    except subprocess.TimeoutExpired:
        reaper.kill()
        reaper.wait(timeout=10)


def _init(ray: Any, **settings: Any) -> None:
    try:
        # What workers print stays in Ray's own log files: the terminal has a live view.
        ray.init(**settings, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        where = settings.get("address", "of this machine")
        reason = " ".join(str(error).split())[:300]
        raise ClusterError(
            f"cannot use the Ray cluster {where}: {reason} (do Ray and Python have the same "
            "versions there, and is its token in ~/.ray/auth_token here?)"
        ) from None


def _check_reachable(address: str) -> None:
    """Ray itself takes a minute to say that nothing answers."""
    host, colon, port = address.rpartition(":")
    if "://" in address or not colon or not port.isdigit():
        raise ClusterError(
            f"{address!r} is not an address of a Ray cluster: give auto or HOST:PORT of its head, "
            "and start the training on a machine of the cluster"
        )
    try:
        socket.create_connection((host, int(port)), CONNECT_TIMEOUT).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(
            f"no Ray cluster answers at {address} ({error}): is it running "
            f"(`ray start --head --port={port}` there), and is the address right?"
        ) from None


def cluster_cpus() -> int:
    """The CPUs of all nodes that are alive."""
    return int(import_ray().cluster_resources().get("CPU", 0))


def cluster_nodes() -> list[dict[str, Any]]:
    """The nodes: id, address, CPUs and memory for objects."""
    return [
        {
            "node": node["NodeID"],
            "address": node["NodeManagerAddress"],
            "cpus": node["Resources"].get("CPU", 0.0),
            "object_store_bytes": node["Resources"].get("object_store_memory", 0.0),
        }
        for node in import_ray().nodes()
        if node["Alive"]
    ]


def store_use() -> dict[str, float]:
    """What all nodes together have in their object stores, and what went to disk for want of room.

    Empty where Ray does not tell (it has no public call for it).
    """
    ray = import_ray()
    try:
        from ray._private.internal_api import get_memory_info_reply, get_state_from_address

        address = ray.get_runtime_context().gcs_address
        state = get_state_from_address(address)  # type: ignore[no-untyped-call]
        stats = get_memory_info_reply(state).store_stats  # type: ignore[no-untyped-call]
    except Exception:
        return {}
    return {
        "bytes_used": stats.object_store_bytes_used,
        "bytes_free": stats.object_store_bytes_avail,
        "spilled_bytes": stats.spilled_bytes_total,
        "restored_bytes": stats.restored_bytes_total,
    }
