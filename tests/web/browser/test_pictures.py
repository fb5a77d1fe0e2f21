"""Pictures of the pages: on a phone, in the dark, and those of docs/web.md.

The pictures of the documentation are written on demand, best of a folder with runs worth seeing:

    export KEISEI_PICTURES=docs/images/web KEISEI_PICTURE_RUNS=runs
    pytest tests/web/browser/test_pictures.py
"""

import io
import os
import re
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import expect

from keisei.shogi import ShogiGame
from tests.web.browser.conftest import STILL
from tests.web.browser.test_review import RECORD, drop, reviewed

DESKTOP = {"width": 1366, "height": 860}
MY_MOVE = re.compile("Your move|You are in check")
MOVES = 14  # of each side, in the first picture
PHONE = {"width": 390, "height": 800}
OPENING = (
    "2g2f 8c8d 2f2e 8d8e 6i7h 4a3b 2e2d 2c2d 2h2d P*2c 2d2f 7a7b 3i3h 3c3d 7g7f 9c9d 9g9f 5a5b "
    "5i6h 1c1d 1g1f 7c7d"
)


@pytest.fixture(scope="module")
def folder():
    """Where the documentation's pictures go, if they are wanted."""
    if "KEISEI_PICTURES" not in os.environ:
        pytest.skip("the documentation's pictures are made with KEISEI_PICTURES=docs/images/web")
    path = Path(os.environ["KEISEI_PICTURES"])
    path.mkdir(parents=True, exist_ok=True)
    return path


@pytest.fixture
def sights(address, serve):
    """A server of runs that are worth seeing."""
    runs = os.environ.get("KEISEI_PICTURE_RUNS")
    return serve(Path(runs)) if runs else address


def shoot(page, path, wait_for=None):
    """Take a picture when everything is drawn and nothing moves."""
    if wait_for:
        expect(page.locator(wait_for).first).to_be_visible()
    expect(page.locator(".skeleton")).to_have_count(0)
    page.wait_for_function(STILL)
    Image.open(io.BytesIO(page.screenshot())).save(path, quality=88, method=6)
    assert path.stat().st_size > 5_000


def rows(page, kind):
    """The names of the runs of a kind, as the page lists them."""
    page.goto(page.url.split("#")[0] + "#/runs")
    expect(page.locator("[data-run]").first).to_be_visible()
    kinds = page.locator(f"small:text('{kind}')")
    named = page.locator("[data-run]:not(.broken)").filter(has=kinds)
    return named.evaluate_all("rows => rows.map((row) => row.dataset.run)")  # the list may change


def find_early_game(page):
    """Show a game in play that is not near its end, if there is one."""
    for _ in range(8):
        following = page.get_by_role("button", name="Next game")
        move = re.search(r"move (\d+)", page.locator(".live h2").inner_text())
        if move is None or int(move[1]) in range(20, 120) or not following.count():
            return
        following.click()


def begin(page, home, sfen):
    """A game from a position, against the first player there is."""
    page.goto(f"{home}/#/position")
    page.goto(f"{home}/#/play")
    page.get_by_role("slider", name="Strength").fill("2")
    page.get_by_role("combobox", name="Start").select_option("sfen")
    page.get_by_role("textbox", name="SFEN").fill(sfen)
    page.get_by_role("button", name="Start the game").click()
    expect(page.get_by_role("status").filter(has_text="Your move")).to_be_visible()


def test_a_phone_in_the_dark(open_page, address, tmp_path):
    page = open_page(f"{address}/#/games/first/1?ply=20", viewport=PHONE, color_scheme="dark")
    shoot(page, tmp_path / "phone.webp", ".board use")


def test_pictures_of_runs(open_page, sights, folder):
    page = open_page(sights, viewport=DESKTOP, device_scale_factor=1.5)
    shogi, worlds = rows(page, "shogi"), rows(page, "treasure")
    page.goto(f"{sights}/#/runs?compare={','.join(shogi[:3])}&metric=wins against random|entropy")
    expect(page.locator(".compare-card canvas")).to_have_count(2)
    page.set_viewport_size({"width": 1366, "height": 1100})
    shoot(page, folder / "runs.webp")
    page.set_viewport_size(DESKTOP)
    for theme, scheme in (("run", "light"), ("run_dark", "dark")):
        page.emulate_media(color_scheme=scheme)
        page.goto(f"{sights}/#/runs/{shogi[0]}")
        expect(page.locator(".live .board use").first).to_be_visible()
        find_early_game(page)
        shoot(page, folder / f"{theme}.webp")
    page.emulate_media(color_scheme="light")
    page.goto(f"{sights}/#/runs/{worlds[0]}")
    page.get_by_role("slider", name="Turn").fill("15")
    shoot(page, folder / "world.webp", "canvas.world")
    page.goto(f"{sights}/#/games?run={shogi[-1]}")
    shoot(page, folder / "games.webp", "table.games")
    page.locator("table.games a").first.click()
    expect(page.locator(".board use").first).to_be_visible()
    for _ in range(60):
        page.keyboard.press("ArrowRight")
    shoot(page, folder / "game.webp", "ol.moves")
    page.set_viewport_size({"width": 1366, "height": 2300})
    page.goto(f"{sights}/#/runs/{shogi[-1]}")
    for chart in page.locator(".chart").all():
        chart.scroll_into_view_if_needed()
        expect(chart.locator("canvas")).to_be_visible()
    page.evaluate("scrollTo(0, 0)")
    shoot(page, folder / "run_whole.webp", ".board use")


def test_pictures_of_play(open_page, sights, folder):
    game = ShogiGame()
    for move in OPENING.split():
        game.push_usi(move)
    page = open_page(f"{sights}/#/play", viewport=DESKTOP, device_scale_factor=1.5)
    shoot(page, folder / "play_start.webp", ".board use")
    begin(page, sights, game.sfen())
    page.get_by_role("button", name="Hint").click()
    shoot(page, folder / "play.webp", ".arrow.best")
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Western").check()
    shoot(page, folder / "settings.webp", ".menu")
    page.get_by_label("Kanji", exact=True).check()
    page.keyboard.press("Escape")
    page.locator('[data-square="8h"]').click()
    page.locator('[data-square="2b"]').click()
    shoot(page, folder / "promotion.webp", ".promotion")


def test_the_picture_of_a_game_in_play(open_page, serve, folder, tmp_path):
    """The first one that a reader sees: both sides play what the shipped network thinks best."""
    page = open_page(
        f"{serve(tmp_path)}/#/play",
        viewport={"width": 1180, "height": 780},
        device_scale_factor=1.5,
    )
    page.get_by_role("slider", name="Strength").fill("7")  # a level of that network
    page.get_by_role("button", name="Start the game").click()
    for turn in range(MOVES):
        expect(page.get_by_role("status").filter(has_text=MY_MOVE)).to_be_visible()
        expect(page.locator("ol.moves li")).to_have_count(2 * turn)
        page.get_by_role("button", name="Hint").click()
        page.locator(".hints button").first.click()
    expect(page.locator("ol.moves li")).to_have_count(2 * MOVES)
    page.get_by_role("button", name="Hint").click()
    shoot(page, folder / "board.webp", ".arrow.best")


def test_the_picture_of_a_review(open_page, serve, folder, tmp_path):
    page = open_page(f"{serve(tmp_path)}/#/yours", viewport=DESKTOP, device_scale_factor=1.5)
    drop(page, RECORD.name, RECORD.read_bytes())
    reviewed(page)
    page.get_by_role("group", name="Worst moves").get_by_role("button").first.click()
    shoot(page, folder / "review.webp", ".arrow.played")


def test_pictures_of_a_phone(open_page, sights, folder):
    page = open_page(sights, viewport=PHONE, device_scale_factor=2)
    shogi = rows(page, "shogi")
    shoot(page, folder / "phone_runs.webp", "[data-run]")
    page.goto(f"{sights}/#/runs/{shogi[0]}")
    shoot(page, folder / "phone_run.webp", ".board use")
    page.emulate_media(color_scheme="dark")
    begin(page, sights, ShogiGame().sfen())
    page.locator('[data-square="2g"]').click()
    shoot(page, folder / "phone_play.webp", ".target")
