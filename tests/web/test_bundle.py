"""What is shipped of the page is what its sources say, and its licences are told."""

import filecmp
import json
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "web"
STATIC = Path(__file__).parents[2] / "keisei" / "web" / "static"


@pytest.fixture(scope="module")
def node():
    """Node with the pinned packages of the page."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("Node is not here: apt install nodejs npm")
    if not (SOURCES / "node_modules" / ".package-lock.json").is_file():  # what npm writes last
        install = ["npm", "ci", "--no-fund", "--no-audit"]
        done = subprocess.run(install, cwd=SOURCES, capture_output=True, text=True, timeout=200)
        if done.returncode:
            pytest.skip(f"npm ci failed: {done.stderr[-500:]}")
    return shutil.which("node")


def test_the_same_sources_give_the_same_bytes(node, tmp_path):
    subprocess.run([node, "build.mjs", str(tmp_path)], cwd=SOURCES, check=True, timeout=120)
    built = sorted(path.name for path in tmp_path.iterdir())
    assert built == sorted(path.name for path in STATIC.iterdir())
    same, different, missing = filecmp.cmpfiles(STATIC, tmp_path, built, shallow=False)
    assert (different, missing) == ([], []), "run `make web` and commit keisei/web/static"
    assert same == built


def test_the_sources_have_no_type_errors(node):
    check = [node, "node_modules/typescript/bin/tsc", "--noEmit"]
    done = subprocess.run(check, cwd=SOURCES, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


def test_the_types_of_the_page_are_those_of_the_server():
    typescript = runpy.run_path(str(SOURCES / "scripts" / "make_types.py"))["typescript"]
    written = (SOURCES / "src" / "schema.ts").read_text(encoding="utf-8")
    assert written == typescript(), "run `make web` and commit web/src/schema.ts"


def test_every_package_in_the_bundle_has_its_licence_there():
    packages = json.loads((SOURCES / "package.json").read_text())["dependencies"]
    told = (STATIC / "licenses.txt").read_text()
    for name, version in packages.items():
        assert f"{name} {version}" in told
    assert told.count("The MIT License") == len(packages)
    assert "SIL OPEN FONT LICENSE" in told


def test_nothing_of_the_bundle_comes_from_elsewhere():
    """No address of another server, but the names of SVG and its like."""
    for path in STATIC.glob("*.[jhc]*"):
        for part in path.read_text().split("http")[1:]:
            assert part.startswith(("://www.w3.org/", "s://www.w3.org/")), (path.name, part[:60])
