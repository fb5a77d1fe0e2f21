"""What this process may use of its machine, and how it is seen there."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keisei.errors import KeiseiError

if TYPE_CHECKING:
    import torch


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def choose_device(name: str, setting: str = "env.device") -> torch.device:
    """The device of a setting; `auto` is CUDA where there is one."""
    import torch  # which takes seconds, and most who need this module do not need it

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(name)
    there = torch.cuda.device_count()
    if device.type == "cuda" and (device.index or 0) >= there:
        raise KeiseiError(
            f"{setting} is {name}, but PyTorch sees {there} CUDA devices here; use auto or cpu"
        )
    return device


def keep_freed_memory() -> None:
    """Let the process keep the memory it frees, for its next allocation (glibc only).

    By default glibc gives the megabytes of every layer back to the system and takes them again,
    page by page, a moment later: a tenth to a fifth of the time of a small network.
    """
    libc: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
    if hasattr(libc, "mallopt"):
        libc.mallopt(-1, 1 << 30)  # M_TRIM_THRESHOLD
        libc.mallopt(-3, 1 << 25)  # M_MMAP_THRESHOLD: the most that glibc allows


def give_back_memory() -> None:
    """Give the system what was freed and lies between what is still in use (glibc only)."""
    libc: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


def name_process(name: str) -> None:
    """The name that process lists show (Linux; 15 letters at most)."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text(name[:15])


def give_way() -> None:
    """Leave the cores to others: the lowest priority, also for what this process starts later.

    Linux shares them between sessions first (autogroup), so if this process leads a session of its
    own, that gets the lowest priority, too; another's session is not ours to change.
    """
    os.nice(19)
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # a system that does not group by sessions
            Path("/proc/self/autogroup").write_text("19")
