import os

import pytest

# Both are read at import. Threads of PyTorch that spin while others compute cost a factor of 100 on
# a busy machine; and slots of shared memory are handed out full of what is plainly wrong.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
os.environ.setdefault("KEISEI_POISON_SLOTS", "1")


def pytest_collection_modifyitems(items):
    """With `-n`, a file's tests share a process: its fixtures are made once.

    Tests that see what others do on the machine (clusters of Ray, /dev/shm) share one, too.
    """
    for item in items:
        together = item.path.parent.name in ("cluster", "parallel", "docs")
        group = "machine" if together else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))
