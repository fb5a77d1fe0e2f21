"""From a game to a lesson: review, as a reader sees it."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.web.browser.test_play import square, start

# Black could mate at once, and does not.
MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"


def serious(page):
    """What axe finds that hinders readers with other eyes and hands."""
    violations = Axe().run(page).response["violations"]
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
        for one in violations
        if one["impact"] in ("serious", "critical")
    ]


def reviewed(page):
    """Wait until everything is analysed."""
    expect(page.get_by_role("status").filter(has_text="All moves are analysed")).to_be_visible()


def lose(page, address):
    """Play a game with a blunder, by clicks, and resign."""
    page.goto(f"{address}/#/play?run=first")
    start(page, MATE_IN_ONE)
    square(page, "5i").click()
    square(page, "5h").click()
    expect(page.locator("ol.moves li")).to_have_count(2)
    page.get_by_role("button", name="Resign").click()
    page.get_by_role("dialog").get_by_role("button", name="Resign").click()


def test_a_finished_game_is_reviewed_by_one_click(open_page, address):
    page = open_page(address)
    lose(page, address)
    page.get_by_role("dialog").get_by_role("link", name="Review").click()
    reviewed(page)
    worst = page.get_by_role("group", name="Worst moves").get_by_role("button").first
    expect(worst).to_contain_text("K-5h")
    worst.click()
    expect(page.locator(".advice")).to_contain_text("Best G*5b")
    expect(page.locator(".arrow.best")).to_have_count(1)
    expect(page.locator(".arrow.played")).to_have_count(1)
    expect(page.locator("ol.moves .loss").first).to_be_visible()
    expect(page.locator(".value-graph .dot")).not_to_have_count(0)
    assert serious(page) == []
    page.emulate_media(color_scheme="dark")
    assert serious(page) == []
    page.set_viewport_size({"width": 375, "height": 720})
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_a_recorded_game_is_reviewed_by_one_click_and_no_longer_than_one_looks(open_page, address):
    page = open_page(f"{address}/#/games/first/1")
    page.get_by_role("button", name="Review this game").click()
    expect(page.get_by_role("progressbar", name="Positions analysed")).to_be_visible()
    with page.expect_event("requestfailed", lambda one: "review/stream" in one.url):
        page.get_by_role("link", name="Runs", exact=True).click()
    page.go_back()
    reviewed(page)
