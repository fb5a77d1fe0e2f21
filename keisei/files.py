"""Writing a file so that a crash, a full disk or a power cut cannot destroy it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


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


def _sync_folder(folder: Path) -> None:
    """Make a rename in `folder` last through a power cut."""
    if os.name == "nt":  # Windows has no such call, and needs none
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
