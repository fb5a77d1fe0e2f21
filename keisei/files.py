"""Writing a file so that nothing can destroy it, and reading one that a stranger may have made."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO


def replace_file(path: Path, data: bytes | memoryview) -> None:
    """Write `data` to `path` so that, whatever happens, the old file or the new one is there.

    It is written beside `path` as `.NAME.PID.tmp`, synced, and renamed. Only a killed process
    leaves such a file behind.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with aside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
        _sync_folder(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise


def write_json(path: Path, data: Any) -> None:
    """Write results in the place of what was there; a device or a pipe is simply written to."""
    text = (json.dumps(data, indent=2) + "\n").encode()
    if path.exists() and not path.is_file():
        path.write_bytes(text)
    else:
        replace_file(path.resolve(), text)  # a link stays one


def _sync_folder(folder: Path) -> None:
    """Make a rename in `folder` last through a power cut."""
    if os.name == "nt":  # Windows has no such call, and needs none
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_regular(path: Path, limit: int | None = None, follow: bool = True) -> BinaryIO:
    """Open a regular file of at most `limit` bytes to read; without `follow`, not through a link.

    Anything else is an `OSError`, at once: a pipe would be waited for, and a device never ends.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if not follow:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        if limit is not None and status.st_size > limit:
            raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, limit: int, follow: bool = True) -> bytes:
    """All bytes of such a file; of one that grows meanwhile, the first."""
    with open_regular(path, limit, follow) as file:
        return file.read(limit)
