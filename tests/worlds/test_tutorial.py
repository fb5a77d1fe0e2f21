import re
from pathlib import Path

from keisei.worlds import WORLDS

TUTORIAL = Path(__file__).parents[2] / "docs/worlds/tutorial.md"


def test_the_tutorial_runs_from_its_first_line_to_its_last(monkeypatch):
    monkeypatch.setitem(WORLDS, "harvest", None)  # which the tutorial sets, and this removes
    blocks = re.findall(r"```python\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 5
    exec(compile("\n".join(blocks), str(TUTORIAL), "exec"), {"__name__": "tutorial"})


def test_the_tutorials_world_takes_at_most_100_lines():
    first = re.search(r"```python\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL)
    assert len(first[1].splitlines()) <= 100
