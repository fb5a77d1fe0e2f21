import os
import sys

import pytest

from tests.docs.pages import ROOT, blocks

# Both are read at import. Threads of PyTorch that spin while others compute cost a factor of 100 on
# a busy machine; and slots of shared memory are handed out full of what is plainly wrong.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
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
