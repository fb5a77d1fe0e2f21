"""A fault at every write: whatever fails, the run opens, and nothing older is lost."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def layer(tmp_path_factory):
    """The layer between a process and its files, in which calls can be made to fail."""
    compiler = shutil.which("cc")
    if not compiler or sys.platform != "linux":
        pytest.skip("it needs Linux and a C compiler")
    library = tmp_path_factory.mktemp("layer") / "failing_writes.so"
    source = HERE / "failing_writes.c"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"]
    subprocess.run(command, check=True, timeout=60)
    return library


def test_whatever_fails_while_a_file_is_written_the_run_opens_and_has_the_old_one_or_the_new(
    layer, tmp_path
):
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.write_all", tmp_path],
        env={**os.environ, "LD_PRELOAD": str(layer), "OMP_NUM_THREADS": "1"},
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    print(counts)
    for kind, ends in counts.items():
        # At least open, write, sync and rename (or what a journal does), each with three faults.
        assert ends["faults"] >= 3 * 4, kind
        assert ends["old"] > 0, kind
        assert ends["killed"] == ends["faults"] // 3, kind
