"""Pictures by matplotlib, written so that the old file or the new one is there."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure as PNG: aside first, then in the place of what was there."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing")  # of a run's name in kanji
            figure.savefig(aside, format="png")
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)
