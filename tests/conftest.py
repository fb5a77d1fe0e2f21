import os
import sys

import pytest

from tests.docs.pages import ROOT, blocks

# Read at import. Two tests run at once: each has one thread for PyTorch, or they would wait for
# each other's. Slots of shared memory are handed out full of what is plainly wrong.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("KEISEI_POISON_SLOTS", "1")

HARVEST = blocks(ROOT / "docs/worlds/tutorial.md", "python")[0]


@pytest.fixture
def harvest_folder(tmp_path, monkeypatch):
    """The current folder, with the tutorial's world as `harvest.py`; it is not on the path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    (tmp_path / "harvest.py").write_text(HARVEST, encoding="utf-8")
    yield tmp_path
    for name in set(sys.modules) - before:  # a later test has other files of these names
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]
