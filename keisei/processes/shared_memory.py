"""Memory that several processes see, and that is gone when the last of them is.

The memory is a file without a name, passed on as an open file descriptor. So nothing can be left
behind, whichever process is killed, and no tracker can remove it too early.
"""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil

Layout = Mapping[str, tuple[tuple[int, ...], Any]]  # the shape and dtype of each array


class SharedArrays:
    """Arrays side by side in one piece of shared memory.

    >>> arrays = SharedArrays({"count": ((2,), np.int64)})
    >>> twin = SharedArrays({"count": ((2,), np.int64)}, os.dup(arrays.fd))  # in another process
    >>> arrays["count"][0] = 7
    >>> twin["count"].tolist()
    [7, 0]
    """

    def __init__(self, layout: Layout, fd: int | None = None) -> None:
        self.layout = dict(layout)
        offsets, end = {}, 0
        for name, array in self.layout.items():
            offsets[name] = end
            end += _array_bytes(*array)
        self.nbytes = max(end, 1)
        self.fd = _nameless_file(self.nbytes) if fd is None else fd
        memory = mmap.mmap(self.fd, self.nbytes)
        self._arrays: dict[str, npt.NDArray[Any]] = {
            name: np.frombuffer(memory, dtype, prod(shape), offsets[name]).reshape(shape)
            for name, (shape, dtype) in self.layout.items()
        }

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._arrays[name]

    def close(self) -> None:
        """Let go; the memory goes with the last array, here or elsewhere, that looks at it."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
            self._arrays = {}


def layout_bytes(layout: Layout) -> int:
    """The memory that arrays need together."""
    return sum(_array_bytes(*array) for array in layout.values())


def _array_bytes(shape: tuple[int, ...], dtype: Any) -> int:
    return -(-prod(shape) * np.dtype(dtype).itemsize // 64) * 64  # whole cache lines


def _nameless_file(size: int) -> int:
    # The system promises any amount, and kills the process that uses more than there is.
    there = psutil.virtual_memory().available
    if size > there:
        message = f"{size / 2**30:.1f} GiB are needed and {there / 2**30:.1f} GiB are free"
        raise OSError(errno.ENOMEM, message)
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("keisei")
    else:  # not Linux: a file that is removed as soon as it is there
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return fd
