"""Runs, games and worlds, as a reader sees them."""

import re
import signal
import subprocess

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from keisei.shogi.records import read_record
from tests.processes import Process
from tests.web.conftest import TINY
from tests.web.test_runs import write_ladder

PAGES = {
    "runs": "#/runs",
    "run": "#/runs/first",
    "world": "#/runs/hunt",
    "games": "#/games?run=first",
    "yours": "#/yours",
    "game": "#/games/first/1?ply=12",
    "worlds": "#/worlds",
    "play": "#/play",
    "position": "#/position",
    "missing": "#/nowhere",
}


@pytest.fixture
def training(tmp_path):
    """Starts a training that would last for minutes, and ends it with the test."""
    started = []

    def start(runs_dir, name):
        overrides = [*TINY, "training.total_timesteps=10000000", f"logging.runs_dir={runs_dir}"]
        options = [part for override in overrides for part in ("-o", override)]
        with (tmp_path / "training.log").open("w") as log:
            command = ["train", "--name", name, *options]
            started.append(Process(command, stdout=log, stderr=log, cwd=tmp_path))

    yield start
    for process in started:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)


def points(page, chart):
    return int(page.locator(f'[data-chart="{chart}"]').get_attribute("data-points"))


def test_a_training_run_appears_and_its_curve_moves(open_page, serve, training, tmp_path):
    runs = tmp_path / "runs"
    runs.mkdir()
    page = open_page(serve(runs))
    expect(page.get_by_text("No runs yet")).to_be_visible()
    training(runs, "young")
    row = page.locator('[data-run="young"]')  # comes by itself: the page is not loaded again
    expect(row).to_contain_text("training")
    row.get_by_role("link").click()
    expect(page.locator('[data-chart="Entropy"]')).to_be_visible()
    before = points(page, "Entropy")
    page.wait_for_function(
        "before => +document.querySelector('[data-chart=Entropy]').dataset.points > before + 1",
        arg=before,
    )
    expect(page.get_by_role("region", name="Live game").locator(".board")).to_be_visible()


def test_a_broken_run_shows_its_error_beside_the_others(open_page, serve, runs):
    (runs / "damaged").mkdir()
    (runs / "damaged" / "config.yaml").write_text("env: {}\n")
    (runs / "damaged" / "metrics.sqlite").write_text("not a database")
    page = open_page(serve(runs))
    expect(page.locator('[data-run="damaged"]')).to_contain_text("not a database")
    expect(page.locator('[data-run="first"]')).to_contain_text("finished")
    page.get_by_role("link", name="damaged").click()
    expect(page.get_by_role("alert")).to_contain_text("not a database")


def test_curves_of_several_runs_are_compared(open_page, address):
    page = open_page(f"{address}/#/runs?compare=first&metric=entropy")
    legend = page.locator(".compare-card .legend li")
    expect(legend).to_have_count(1)
    page.get_by_label("Compare hunt").check()
    expect(legend).to_have_count(2)
    page.get_by_label("Metric").select_option("policy_loss")
    expect(page.locator('[data-chart="policy_loss"]')).to_be_visible()


def test_compared_curves_are_smoothed_over_time_logarithmic_several_and_a_file(
    open_page, address, tmp_path
):
    page = open_page(f"{address}/#/runs?compare=first&metric=entropy", accept_downloads=True)
    # A select's label is found by its options, too: "draws against random" has an "and".
    page.get_by_label(re.compile("^And")).select_option("policy_loss")
    for chart in ("entropy", "policy_loss"):
        expect(page.locator(f'[data-chart="{chart}"]')).to_be_visible()
    page.get_by_label(re.compile("^Over")).select_option("time")
    page.get_by_label("Smoothing").fill("0.9")
    page.get_by_label("Logarithmic").check()
    expect(page.locator('[data-chart="entropy"]:not([data-points="0"])')).to_be_visible()
    assert "axis=time" in page.url
    assert "log=1" in page.url
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    download.value.save_as(tmp_path / "keisei.csv")
    head, *rows = (tmp_path / "keisei.csv").read_text().splitlines()
    assert head == "run,metric,seconds,value"
    assert {row.split(",")[1] for row in rows} == {'"entropy"', '"policy_loss"'}
    page.get_by_role("button", name="Remove policy_loss").click()
    expect(page.locator('[data-chart="policy_loss"]')).to_have_count(0)


def test_a_game_is_replayed_by_keys_and_its_records_can_be_read(open_page, address, tmp_path):
    page = open_page(f"{address}/#/games?run=first", accept_downloads=True)
    page.locator("table.games tbody tr a").first.click()
    moves = page.locator("ol.moves li")
    expect(moves.first).to_be_visible()
    page.keyboard.press("End")
    last = page.locator("ol.moves [aria-current]")
    expect(last).to_contain_text(str(moves.count()))
    page.keyboard.press("ArrowLeft")
    expect(last).to_contain_text(str(moves.count() - 1))
    page.keyboard.press("Home")
    expect(page.get_by_role("slider", name="Move")).to_have_value("0")
    for name in ("KIF", "CSA"):
        with page.expect_download() as download:
            page.get_by_role("link", name=name).click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        assert len(read_record(path).moves) == moves.count()


def test_a_shared_link_shows_the_position(open_page, address):
    page = open_page(f"{address}/#/games/first/1?ply=7")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    square = page.locator(".squares [aria-label*='king']").first
    expect(square).to_be_visible()
    labels = page.locator(".squares button").evaluate_all("all => all.map(b => b.ariaLabel)")
    page.get_by_role("button", name="Share").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    shared = open_page(page.evaluate("navigator.clipboard.readText()"))
    expect(shared.get_by_role("heading", name="Position")).to_be_visible()
    expect(shared.locator(".squares button").first).to_be_visible()
    assert (
        shared.locator(".squares button").evaluate_all("all => all.map(b => b.ariaLabel)") == labels
    )


def test_the_menu_leads_to_the_worlds(open_page, address):
    page = open_page(address)
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Worlds").click()
    expect(page.locator('[data-run="hunt"]')).to_be_visible()
    expect(page.locator('[data-run="first"]')).to_have_count(0)


def test_on_a_phone_the_list_shows_results_and_a_replay_its_buttons(open_page, address):
    page = open_page(f"{address}/#/games?run=first", viewport={"width": 375, "height": 720})
    expect(page.locator("td.result").first).to_be_in_viewport(ratio=1)
    page.locator("table.games a").first.click()
    expect(page.get_by_role("button", name="One move on")).to_be_in_viewport(ratio=1)


def test_an_episode_of_a_world_is_played_and_scrubbed(open_page, address):
    page = open_page(f"{address}/#/runs/hunt")
    turn = page.get_by_role("slider", name="Turn")
    expect(turn).not_to_have_value("0")  # it plays by itself
    turn.fill("15")
    expect(page.get_by_label("The world at turn 15")).to_be_visible()
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    expect(page.get_by_label("Returns per agent").locator("li")).to_have_count(2)


def test_a_worlds_measures_have_a_chart_each_with_a_line_for_each_agent(open_page, address):
    page = open_page(f"{address}/#/runs/hunt")
    for measure in ("Efficiency", "Peace"):
        expect(page.locator(f'[data-chart="{measure}"]')).to_be_visible()
    page.get_by_role("button", name="more metrics").click()
    expect(page.locator('[data-chart="epsilon"] .legend li')).to_have_count(3)  # all, and two


def test_a_stream_that_breaks_is_told_and_mended(open_page, address):
    page = open_page(f"{address}/#/position", expected=["ERR_FAILED"])
    page.route("**/api/runs/stream", lambda route: route.abort())
    page.goto(f"{address}/#/runs")
    expect(page.get_by_text("The connection to Keisei is lost")).to_be_visible()
    page.unroute("**/api/runs/stream")
    expect(page.locator('[data-run="first"]')).to_be_visible()


def test_a_hidden_tab_listens_to_nothing(open_page, address):
    page = open_page(f"{address}/#/position")
    page.evaluate(
        """() => {
          const open = (window.streams = new Set());
          window.EventSource = class extends EventSource {
            constructor(url) { super(url); open.add(this); }
            close() { super.close(); open.delete(this); }
          };
          window.hide = (hidden) => {
            Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
          };
        }"""
    )
    page.evaluate("location.hash = '#/runs/first'")
    page.wait_for_function("() => window.streams.size === 1")
    page.evaluate("hide(true)")
    page.wait_for_function("() => window.streams.size === 0")
    page.evaluate("hide(false)")
    page.wait_for_function("() => window.streams.size === 1")


def settled(page):
    expect(page.get_by_role("heading").first).to_be_visible()
    expect(page.locator(".skeleton")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_hinders_readers_with_other_eyes_and_hands(open_page, address, scheme):
    """axe finds nothing serious on any page; in the dark, only colours are looked at again."""
    found = []
    options = {} if scheme == "light" else {"runOnly": ["color-contrast"]}
    page = open_page(address, color_scheme=scheme)
    for name, where in PAGES.items():
        page.goto(f"{address}/{where}")
        settled(page)
        for violation in Axe().run(page, options=options).response["violations"]:
            if violation["impact"] in ("serious", "critical"):
                nodes = [node["html"][:200] for node in violation["nodes"][:3]]
                found.append((name, violation["id"], nodes))
    assert found == []


def test_every_page_fits_a_phone(open_page, address):
    page = open_page(address, viewport={"width": 375, "height": 720})
    for where in PAGES.values():
        page.goto(f"{address}/{where}")
        settled(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, where


def test_a_chosen_theme_and_pieces_stay_chosen(open_page, address):
    page = open_page(f"{address}/#/position", color_scheme="light")
    page.get_by_role("button", name="Dark colours").click()
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Western").check()
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator(".board use[href='#western-P']")).to_have_count(18)


def test_the_page_is_light(open_page, address):
    """Under 500 KB in all, also where nothing is compressed."""
    page = open_page(f"{address}/#/runs/first")
    settled(page)
    sizes = page.evaluate(
        """() => [...performance.getEntriesByType("navigation"),
                  ...performance.getEntriesByType("resource")]
                 .filter((entry) => !entry.name.includes("/api/"))
                 .map((entry) => [entry.decodedBodySize, entry.transferSize])"""
    )
    assert sum(whole for whole, _ in sizes) < 500_000
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    whole, sent = (sum(column) for column in zip(*sizes, strict=True))
    print(f"{whole / 1e3:.0f} KB, {sent / 1e3:.0f} KB sent, first paint after {paint:.0f} ms")


def test_a_rated_run_shows_its_elo_over_steps_and_time_and_says_how_it_plays(
    open_page, serve, runs
):
    write_ladder(runs / "first")
    address = serve(runs)
    page = open_page(f"{address}/#/runs/first")
    tiles = page.locator(".tile")
    expect(tiles.filter(has_text="Elo, policy alone")).to_contain_text("200± 50")
    expect(tiles.filter(has_text="Elo, 400 nodes")).to_contain_text("600± 50")
    for chart in ("Elo over steps", "Elo over processor hours"):
        assert points(page, chart) == 2
        legend = page.locator(f'[data-chart="{chart}"] .legend')
        expect(legend).to_contain_text("policy alone 200")
        expect(legend).to_contain_text("400 nodes 600")
    (runs / "first" / "ladder.json").write_text("{")
    page.reload()
    expect(page.get_by_text("ladder.json is not a ladder")).to_be_visible()
    expect(tiles.filter(has_text="Wins against random")).to_be_visible()
