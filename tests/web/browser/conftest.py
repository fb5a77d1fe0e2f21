"""Debian's Chromium, driven by Playwright, before a real server with real runs."""

import os
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

from keisei.web import review
from tests.web.conftest import serving

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    # One process for all pages, and no other for a GPU that is not there: half the work per page.
    "--in-process-gpu",
    "--process-per-site",
    "--renderer-process-limit=1",
]
VIEWPORT = {"width": 1280, "height": 900}
WAIT_MS = 120_000  # a limit for a machine that is busy; what is awaited comes in a moment

# Only what goes on for ever may move: the dot of a training.
STILL = "() => document.getAnimations().every((a) => a.effect.getTiming().iterations > 1)"

expect.set_options(timeout=WAIT_MS)


def serious(page):
    """What axe finds that hinders readers with other eyes and hands."""
    page.wait_for_function(STILL)  # colours that change are of neither kind
    violations = Axe().run(page).response["violations"]
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
        for one in violations
        if one["impact"] in ("serious", "critical")
    ]


@pytest.fixture(scope="package")
def chromium():
    if not CHROMIUM.is_file() and os.geteuid() == 0 and shutil.which("apt-get"):
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"]
        subprocess.run(install, capture_output=True, timeout=240, check=False)
    if not CHROMIUM.is_file():
        pytest.skip(f"{CHROMIUM} is not here: apt install chromium")
    return CHROMIUM


@pytest.fixture(scope="package")
def browser(chromium):
    """One browser, with a new profile, for all tests of this folder."""
    with sync_playwright() as playwright:
        one = playwright.chromium.launch(executable_path=str(chromium), args=FLAGS)
        yield one
        one.close()


@pytest.fixture(scope="package")
def window(browser):
    """A window that stays open: a page in it costs a fifth of one in a window of its own."""
    context = browser.new_context(viewport=VIEWPORT)
    context.new_page()  # with no page left, its process would end
    return context


@pytest.fixture(scope="package")
def address(trained_runs):
    """Where a server shows a run of Shogi ("first") and one of a world ("hunt")."""
    with pytest.MonkeyPatch.context() as patch, serving(trained_runs) as client:
        patch.setattr(review, "NODES", 40)  # what is found has tests elsewhere; here it is shown
        yield str(client.base_url)


@pytest.fixture
def serve():
    """Starts servers of other folders of runs, and gives their addresses."""
    with ExitStack() as servers:
        yield lambda runs: str(servers.enter_context(serving(runs)).base_url)


@pytest.fixture
def open_page(browser, window, serve):  # the pages are closed before the servers
    """Opens pages; at the test's end none of them may have complained or asked elsewhere."""
    pages, complaints = [], []

    def open_one(url, *, expected=(), **options):
        """A new page at `url`; `expected` are parts of complaints that the test means to cause."""
        # One page of a window is in front, so a test's second page has a window of its own.
        ordinary = not options and not pages
        options.setdefault("viewport", VIEWPORT)
        page = window.new_page() if ordinary else browser.new_page(**options)
        pages.append(page)
        page.set_default_timeout(WAIT_MS)
        home = "/".join(url.split("/")[:3])

        def complain(text):
            if not any(part in text for part in expected):
                complaints.append(text)

        page.on("console", lambda said: said.type == "error" and complain(said.text))
        page.on("pageerror", lambda error: complain(str(error)))
        page.on("request", lambda r: r.url.startswith((home, "data:")) or complain(r.url))
        page.goto(url)
        return page

    yield open_one
    for page in pages:
        if page.context == window:
            page.evaluate("localStorage.clear()")
        page.close()
    window.clear_cookies()
    window.clear_permissions()
    assert complaints == []
