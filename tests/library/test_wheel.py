"""The page "Keisei from Python" runs from a wheel, in an empty folder."""

import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from tests.docs.pages import ROOT, blocks
from tests.docs.rules import TINY

PAGE = ROOT / "docs/python.md"
TEN_MINUTES = '"evaluation.interval=50000"'


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """What pip would unpack from a wheel."""
    source, place = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(
        ROOT / "keisei", source / "keisei", ignore=shutil.ignore_patterns("__pycache__")
    )
    build = "import setuptools.build_meta as build; print(build.build_wheel('.'))"
    words = [sys.executable, "-c", build]
    done = subprocess.run(words, cwd=source, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(source / done.stdout.splitlines()[-1]) as wheel:
        wheel.extractall(place)
    return place


@pytest.mark.timeout(600)
def test_the_blocks_of_the_page_run_in_an_empty_folder(installed, tmp_path):
    script = "\n".join(blocks(PAGE, "python"))
    small = [*TINY, "training.parallel.enabled=false"]
    assert script.count(TEN_MINUTES) == 1
    script = script.replace(TEN_MINUTES, ", ".join(f'"{setting}"' for setting in small))
    script += "\nassert keisei.__file__.startswith(sys.argv[1]), keisei.__file__"
    words = [sys.executable, "-c", f"import sys\n{script}", str(installed)]
    path = os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert {"runs", "win_rate.png", "mine.onnx"} == {file.name for file in tmp_path.iterdir()}
