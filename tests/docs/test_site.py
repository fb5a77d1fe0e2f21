"""The site: it builds without a warning, has every setting and command, and asks nobody else."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
import typer

from keisei.cli import app
from keisei.config_schema import AppConfig
from keisei.settings import Section
from keisei.worlds import WorldRunConfig
from tests.docs.pages import ROOT

ELSEWHERE = re.compile(r"^\s*(https?:)?//")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` does."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-d", str(folder)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return folder


class Loaded(HTMLParser):
    """Collects what a browser loads with a page; links that a reader may click are not among it."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("src", "srcset", "poster") or (name == "href" and tag == "link"):
                self.addresses.append(value)


def test_no_page_loads_anything_from_another_host(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        loaded = Loaded()
        loaded.feed(page.read_text(encoding="utf-8"))
        assert loaded.addresses
        assert [a for a in loaded.addresses if ELSEWHERE.match(a)] == [], page


def test_no_style_and_no_picture_loads_anything_from_another_host(site):
    files = [*site.rglob("*.css"), *site.rglob("*.svg")]
    assert len(files) > 3
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"(url\(|@import|href=)\s*['\"]?(https?:)?//", text), file


def names_in(section, prefix=""):
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, Section):
            yield from names_in(value, f"{prefix}{name}.")
        else:
            yield prefix + name


@pytest.mark.parametrize(
    ("page", "settings"), [("settings", AppConfig), ("world_settings", WorldRunConfig)]
)
def test_the_reference_has_every_setting(site, page, settings):
    text = (site / f"reference/{page}/index.html").read_text(encoding="utf-8")
    assert [name for name in names_in(settings()) if f">{name}</code>" not in text] == []


def test_the_reference_has_every_command_with_its_options(site):
    text = (site / "reference/commands/index.html").read_text(encoding="utf-8")

    def look_for(command, name):
        for word, inner in getattr(command, "commands", {}).items():
            look_for(inner, f"{name} {word}")
        if not hasattr(command, "commands"):
            assert f">{name}<" in text
            params = [p for p in command.params if not getattr(p, "hidden", False)]
            options = [option for p in params for option in p.opts if option[0] == "-"]
            assert [option for option in options if f">{option}</code>" not in text] == []

    look_for(typer.main.get_command(app), "keisei")


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_from_outside_of_the_site_lead_to_files(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []
