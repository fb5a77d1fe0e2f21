from tests.conftest import HARVEST
from tests.docs.pages import ROOT, blocks

TUTORIAL = ROOT / "docs/worlds/tutorial.md"


def test_the_tutorial_runs_from_its_first_line_to_its_last(harvest_folder):
    script = blocks(TUTORIAL, "python")
    assert len(script) == 9
    exec(compile("\n".join(script), str(TUTORIAL), "exec"), {"__name__": "tutorial"})


def test_the_tutorials_world_takes_at_most_60_lines():
    assert len(HARVEST.splitlines()) <= 60
