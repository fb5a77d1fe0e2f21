"""The notebook of examples/ runs from its first cell to its last, all in one process."""

import json

import pytest

from tests.docs.pages import ROOT
from tests.docs.rules import TINY

NOTEBOOK = ROOT / "examples/first_steps.ipynb"
TWO_MINUTES = '"training.total_timesteps=131072"'
QUICK = ", ".join(f'"{setting}"' for setting in [*TINY, "training.parallel.enabled=false"])


@pytest.fixture
def cells():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_the_notebook_is_kept_without_what_it_printed(cells):
    assert [cell for cell in cells if cell["outputs"] or cell["execution_count"]] == []


def test_the_notebook_runs_from_its_first_cell_to_its_last(cells, tmp_path, monkeypatch):
    from matplotlib import pyplot

    monkeypatch.chdir(tmp_path)
    pyplot.switch_backend("agg")
    script = ["".join(cell["source"]) for cell in cells]
    assert sum(TWO_MINUTES in cell for cell in script) == 1
    known = {"__name__": "__main__"}
    for number, cell in enumerate(script):
        exec(compile(cell.replace(TWO_MINUTES, QUICK), f"cell {number}", "exec"), known)
    try:
        assert known["game"].outcome.winner == "black"  # the network, against random moves
        assert known["game"]._repr_svg_().startswith("<svg")
        assert (tmp_path / "first_steps.kif").stat().st_size > 0
        assert len(pyplot.gca().get_lines()) == 3
    finally:
        pyplot.close("all")
