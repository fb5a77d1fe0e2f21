"""The parts of Keisei import each other as CONTRIBUTING's table says, and never in a circle."""

import ast
import re
from graphlib import TopologicalSorter

import pytest

from tests.docs.pages import ROOT

ROW = re.compile(r"^\| `keisei/([\w/]+?)(?:\.py)?` \|.*\| (.*?) ?\|$", re.MULTILINE)
TABLE = {
    part: set(re.findall(r"`([\w/]+)`", may_import))
    for part, may_import in ROW.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
}


def part_of(module):
    """The row of the table that a module belongs to; None: the package `keisei` itself."""
    path = module.removeprefix("keisei").removeprefix(".").replace(".", "/")
    rows = [part for part in TABLE if path == part or path.startswith(f"{part}/")]
    assert rows or path in ("", "__main__"), f"no row of the table has {module}"
    return max(rows, key=len, default=None)


def imports(file):
    """The modules of Keisei that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "keisei":
            for alias in node.names:
                inner = ROOT / f"{node.module}.{alias.name}".replace(".", "/")
                is_module = inner.is_dir() or inner.with_suffix(".py").is_file()
                yield f"{node.module}.{alias.name}" if is_module else node.module
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] == "keisei")


def imported_by_part():
    found = {part: set() for part in TABLE}
    for file in (ROOT / "keisei").rglob("*.py"):
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        part = part_of(module)
        if part is not None:
            found[part] |= {part_of(name) for name in imports(file)} - {part, None}
    return found


FOUND = imported_by_part()


@pytest.mark.parametrize("part", TABLE)
def test_a_part_imports_what_the_table_says_and_nothing_else(part):
    assert FOUND[part] == TABLE[part]


def test_no_two_parts_import_each_other_by_whatever_way():
    list(TopologicalSorter(FOUND).static_order())


def test_the_rules_library_is_known_to_the_game_alone():
    users = {
        file.relative_to(ROOT / "keisei")
        for file in (ROOT / "keisei").rglob("*.py")
        if re.search(r"^\s*(from|import) rsshogi\b", file.read_text(encoding="utf-8"), re.M)
    }
    assert {file.parts[0] for file in users} == {"shogi"}


def test_no_module_has_more_than_400_lines_and_no_function_more_than_50():
    too_long = []
    for file in (ROOT / "keisei").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if len(text.splitlines()) > 400:
            too_long.append(file.name)
        for node in ast.walk(ast.parse(text)):
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if is_function and node.end_lineno - node.lineno >= 50:
                too_long.append(f"{file.name}: {node.name}")
    assert too_long == []
