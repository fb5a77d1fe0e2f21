"""The networks that come with Keisei; README.md beside them says how they were made.

Without PyTorch, so that a program can name a file before it needs it.
"""

from __future__ import annotations

from pathlib import Path

SHIPPED = "shipped"  # the name by which commands know the one to play against
_FOLDER = Path(__file__).parent
SHIPPED_PATH = _FOLDER / "shogi.pt"
# By name; the others are references to rate by (`keisei rate`), and stay as they are.
REFERENCES = ("quick-131072", "quick-262144", "quick-524288", "hour-5247503", "hour-5242880")
NETWORKS = {SHIPPED: SHIPPED_PATH, **{name: _FOLDER / f"{name}.pt" for name in REFERENCES}}
