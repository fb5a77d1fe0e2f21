"""tsshogi, a library of another program, reads KIF under Node."""

import json
import shutil
import subprocess

import pytest

PACKAGE = "tsshogi@2.2.0"
SCRIPT = """
import { importKIF } from "tsshogi";
import { readFileSync } from "node:fs";
const record = importKIF(readFileSync(process.argv[2], "utf8"));
const nodes = [];
record.forEach(({ply, move, comment}) => nodes.push([ply, move.usi ?? move.type, comment.trim()]))
console.log(JSON.stringify(nodes));
"""


def read_by_tsshogi(kif, folder):
    """All nodes of a game: how many moves led there, the last one (or the end), the comment."""
    if not shutil.which("npm"):
        pytest.skip("npm is not here")
    install = ["npm", "install", "--no-fund", "--no-audit", "--silent", PACKAGE]
    done = subprocess.run(install, cwd=folder, capture_output=True, text=True, timeout=200)
    if done.returncode:
        pytest.skip(f"npm cannot install tsshogi: {done.stderr[-300:]}")
    (folder / "game.kifu").write_text(kif, encoding="utf-8")
    (folder / "read.mjs").write_text(SCRIPT)
    run = ["node", "read.mjs", "game.kifu"]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)
