"""Pictures by matplotlib, written so that the old file or the new one is there."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

from keisei.files import replace_file


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure as PNG in the place of what was there."""
    png = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # of a run's name in kanji
        figure.savefig(png, format="png")
    replace_file(path, png.getbuffer())
