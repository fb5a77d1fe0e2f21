"""What the pages of the docs say: their commands and their Python."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "keisei/models/README.md",
    ROOT / "benchmarks/peers/README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def blocks(page, language):
    """The fenced blocks of a language, in order."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^ *```{language}\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)


def commands(page):
    """The commands of all `sh` blocks as lists of words, without their comments."""
    lines = "".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def named_commands(page):
    """The `keisei ...` commands that stand in the text itself."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    spans = re.findall(r"`(keisei [^`]+)`", text)
    return [shlex.split(span) for span in spans]
