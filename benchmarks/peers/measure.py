"""What every script here shares, peers or not: one core, and one line of JSON at the end.

It needs nothing but Python, because Pgx and OpenSpiel run without Keisei.
"""

from __future__ import annotations

import json
import os
import platform
from typing import Any


def pin_to_one_core() -> None:
    """Stay on one core, with all threads; call it before the first of them starts."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def publish(rates: dict[str, float], setup: str, versions: dict[str, str], **more: Any) -> None:
    """Print what was measured (steps per second) as the last line, for `run.py` to read."""
    versions = {"python": platform.python_version(), **versions}
    print(json.dumps({"rates": rates, "setup": setup, "versions": versions, **more}), flush=True)
