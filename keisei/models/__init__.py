"""The network that comes with Keisei, `shogi.pt`; README.md beside it says how it was made.

Without PyTorch, so that a program can name the file before it needs it.
"""

from __future__ import annotations

from pathlib import Path

SHIPPED = "shipped"  # the name by which commands know it
SHIPPED_PATH = Path(__file__).parent / "shogi.pt"
