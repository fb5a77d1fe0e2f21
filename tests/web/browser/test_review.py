"""From a game to a lesson: review, as a reader sees it."""

import re
from pathlib import Path

from playwright.sync_api import expect
from rsshogi.record import Record

from keisei.shogi.records import read_record
from keisei.shogi.variations import read_tree
from tests.shogi.tsshogi import read_by_tsshogi
from tests.web.browser.conftest import serious
from tests.web.browser.test_play import square, start

RECORD = Path(__file__).parents[1] / "records" / "1711.ki2"  # a game of 107 moves, a bishop down
# Black could mate at once, and does not.
MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"


def reviewed(page):
    """Wait until everything is analysed."""
    expect(page.get_by_role("status").filter(has_text="All moves are analysed")).to_be_visible()


def lose(page, address):
    """Play a game with a blunder, by clicks, and resign."""
    page.goto(f"{address}/#/play?run=first")
    start(page, MATE_IN_ONE)
    expect(page.get_by_role("status").filter(has_text="Your move")).to_be_visible()
    square(page, "5i").click()
    square(page, "5h").click()
    expect(page.locator("ol.moves li")).to_have_count(2)
    page.get_by_role("button", name="Resign").click()
    page.get_by_role("dialog").get_by_role("button", name="Resign").click()


def test_a_finished_game_is_reviewed_by_one_click(open_page, address):
    page = open_page(address)
    lose(page, address)
    page.get_by_role("link", name="Review").click()
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


def drop(page, name, data):
    """Drop a file onto the page."""
    page.evaluate(
        """([name, bytes]) => {
          const dataTransfer = new DataTransfer();
          dataTransfer.items.add(new File([new Uint8Array(bytes)], name));
          for (const type of ["dragover", "drop"]) {
            const how = { dataTransfer, bubbles: true, cancelable: true };
            document.body.dispatchEvent(new DragEvent(type, how));
          }
        }""",
        [name, list(data)],
    )


def test_a_real_record_is_dropped_and_reviewed(open_page, serve, tmp_path):
    page = open_page(f"{serve(tmp_path)}/#/yours")
    expect(page.get_by_role("heading", name="No games yet")).to_be_visible()
    drop(page, RECORD.name, RECORD.read_bytes())
    expect(page.get_by_role("heading").filter(has_text="大橋宗銀")).to_be_visible()
    expect(page.locator("ol.moves li")).to_have_count(107)
    expect(page.locator("ol.moves .loss").first).to_be_visible()  # marks come while one looks
    expect(page.locator("ol.moves .mistake").first).to_be_visible()
    for _ in range(30):
        chances = page.locator(".value b").inner_text()
        assert sum(int(said) for said in re.findall(r"(\d+) %", chances)) == 100
        page.keyboard.press("ArrowRight")
    for said in page.locator("ol.moves .loss").all_inner_texts():
        lost, sign = re.fullmatch(r"−(\d+) ?(\S*)", said).groups()
        assert sign == ["", "?!", "?", "??"][sum(int(lost) >= least for least in (5, 10, 20))]


def test_a_pasted_record_with_markup_in_its_names_is_shown_as_it_is(open_page, serve, tmp_path):
    page = open_page(f"{serve(tmp_path)}/#/yours")
    kif = "先手：<img src=x onerror=alert(1)>\n   1 ７六歩(77)\n   2 ３四歩(33)\n"
    page.get_by_role("textbox", name="Review a game").fill(kif)
    page.get_by_role("button", name="Review").click()
    expect(page.get_by_role("heading").first).to_contain_text("<img src=x onerror=alert(1)>")
    reviewed(page)
    page.get_by_role("link", name="Your games").click()
    expect(page.get_by_role("cell").filter(has_text="onerror")).to_be_visible()
    assert page.locator("td img").count() == 0


def test_records_that_cannot_be_read_are_refused_in_one_sentence(open_page, serve, tmp_path):
    page = open_page(f"{serve(tmp_path)}/#/yours", expected=["400", "413"])
    told = page.get_by_role("form", name="Bring a game").get_by_role("alert")
    drop(page, "big.kif", bytes(300_000))
    expect(told).to_contain_text("300,000 bytes; a game record may have at most 262,144")
    drop(page, "picture.png", b"\x89PNG\xff\xfe")
    expect(told).to_contain_text("This is not a game record in KIF, KI2, CSA, USI or SFEN.")
    drop(page, "game.usi", b"position startpos moves 7g7e")
    expect(told).to_contain_text("7g7e")


def test_your_games_are_searched_downloaded_and_deleted_also_on_a_phone(open_page, serve, tmp_path):
    page = open_page(
        f"{serve(tmp_path)}/#/yours", viewport={"width": 375, "height": 720}, accept_downloads=True
    )
    drop(page, RECORD.name, RECORD.read_bytes())
    expect(page.locator("ol.moves li")).to_have_count(107)
    page.get_by_role("link", name="Your games").click()
    row = page.locator("table.games tbody tr")
    expect(row).to_have_count(1)
    expect(row.get_by_text("White wins, resignation")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    assert serious(page) == []
    with page.expect_download() as download:
        page.get_by_role("link", name="KIF of game 1").click()
    download.value.save_as(tmp_path / "game.kif")
    assert len(read_record(tmp_path / "game.kif").moves) == 107
    page.get_by_role("searchbox", name="Search").fill("nobody")
    expect(page.get_by_role("heading", name="No such games")).to_be_visible()
    page.get_by_role("searchbox", name="Search").fill("印達")
    page.get_by_role("button", name="Delete game 1").click()
    assert serious(page) == []
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="No such games")).to_be_visible()


def test_the_worst_move_is_retried_until_it_is_good(open_page, address):
    page = open_page(address)
    lose(page, address)
    page.get_by_role("link", name="Review").click()
    reviewed(page)
    page.get_by_role("button", name="Retry the worst moves of black").click()
    panel = page.get_by_role("region", name="Retry")
    expect(panel).to_contain_text("K-5h and lost")
    page.get_by_role("button", name="black gold in hand, 1").click()
    square(page, "1i").click()
    expect(panel.get_by_role("status")).to_contain_text(re.compile(r"G\*1i is .* of 100 %"))
    assert serious(page) == []
    page.get_by_role("button", name="black gold in hand, 1").click()
    square(page, "5b").click()
    expect(panel.get_by_role("status")).to_contain_text("G*5b: very good, it keeps 100 % of 100 %")
    panel.get_by_role("button", name="Show the answer").click()
    expect(panel).to_contain_text("Best G*5b")
    panel.get_by_role("button", name="Done").click()
    expect(page.get_by_role("group", name="Worst moves")).to_be_visible()


def test_on_a_phone_a_worst_move_and_a_retry_are_in_sight_with_the_board(open_page, address):
    page = open_page(address, viewport={"width": 375, "height": 667})
    lose(page, address)
    page.get_by_role("link", name="Review").click()
    reviewed(page)
    board = page.locator(".squares")
    page.get_by_role("group", name="Worst moves").get_by_role("button").first.click()
    expect(board).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name="Retry the worst moves of black").click()
    panel = page.get_by_role("region", name="Retry")
    expect(panel).to_be_in_viewport(ratio=1)
    expect(board).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name="black gold in hand, 1").click()
    square(page, "5b").click()
    expect(panel.get_by_role("status")).to_contain_text("G*5b: very good")
    expect(panel).to_be_in_viewport(ratio=1)


def test_an_answer_that_comes_too_late_is_not_the_next_questions(open_page, serve, tmp_path):
    page = open_page(f"{serve(tmp_path)}/#/yours")
    blunders = "7g7f 3c3d 8h3c+ 2b3c 2g2f 8c8d 2f2e 8d8e 2e2d 2c2d 2h2d 3c2d"  # bishop, then rook
    page.get_by_role("textbox", name="Review a game").fill(f"startpos moves {blunders}")
    page.get_by_role("button", name="Review").click()
    reviewed(page)
    page.get_by_role("button", name="Retry the worst moves of black").click()
    panel = page.get_by_role("region", name="Retry")
    expect(panel).to_contain_text("1 of")
    waiting = []
    page.route("**/judge", lambda route: waiting.append(route))
    # The pawns at the edges can move whichever of Black's moves are the first two questions.
    expect(square(page, "9g")).to_have_class("movable")
    square(page, "9g").click()
    square(page, "9f").click()
    expect(panel.get_by_role("status")).to_have_text("Looking at your move…")
    panel.get_by_role("button", name="Next").click()
    expect(panel).to_contain_text("2 of")
    with page.expect_response("**/judge"):
        waiting[0].continue_()
    page.unroute("**/judge")
    expect(panel.get_by_role("status")).to_have_text("")
    expect(page.locator(".arrow")).to_have_count(0)
    expect(square(page, "1g")).to_have_class("movable")
    square(page, "1g").click()
    square(page, "1f").click()
    expect(panel.get_by_role("status")).to_contain_text("P-1f")


def test_from_a_game_to_a_lesson_that_other_programs_read(open_page, address, tmp_path):
    page = open_page(address, accept_downloads=True)
    lose(page, address)
    page.get_by_role("link", name="Review").click()
    reviewed(page)
    page.get_by_role("button", name="Retry the worst moves of black").click()
    panel = page.get_by_role("region", name="Retry")
    page.get_by_role("button", name="black gold in hand, 1").click()
    square(page, "5b").click()
    expect(panel.get_by_role("status")).to_contain_text("G*5b: very good")
    panel.get_by_role("button", name="Done").click()
    page.keyboard.press("Home")
    expect(square(page, "5i")).to_have_class("movable")
    page.get_by_role("button", name="black gold in hand, 1").click()
    square(page, "5b").click()
    expect(page.get_by_role("group", name="Variations").get_by_role("button")).to_have_count(1)
    page.get_by_role("textbox", name="Comment").fill("Mate at once")
    page.keyboard.press("Tab")
    expect(page.get_by_role("group", name="Variations")).to_contain_text("✎")
    with page.expect_download() as download:
        page.get_by_role("link", name="KIF").click()
    download.value.save_as(tmp_path / "game.kif")
    kif = (tmp_path / "game.kif").read_text("cp932")
    played = [entry.move.to_usi() for entry in Record.from_kif_str(kif).moves]
    assert (played[0], len(played)) == ("5i5h", 2)
    nodes = read_by_tsshogi(kif, tmp_path)
    assert [move for _, move, _ in nodes] == ["start", *played, "resign", "G*5b"]
    assert nodes[-1] == [1, "G*5b", "Mate at once"]


def test_free_moves_make_variations_that_are_kept_and_exported(open_page, serve, tmp_path):
    page = open_page(f"{serve(tmp_path)}/#/yours", accept_downloads=True)
    page.get_by_role("textbox", name="Review a game").fill("startpos moves 7g7f 3c3d 2g2f 8c8d")
    page.get_by_role("button", name="Review").click()
    reviewed(page)
    variations = page.get_by_role("group", name="Variations")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    for start_square, target in (("6g", "6f"), ("8c", "8d")):
        expect(square(page, start_square)).to_have_class("movable")  # the server said what is legal
        square(page, start_square).click()
        square(page, target).click()
    expect(variations.get_by_role("button")).to_have_count(2)
    expect(page.locator(".advice")).to_contain_text("Tried P-8d")  # judged when it is looked at
    page.get_by_role("textbox", name="Comment").fill("A quiet line")
    page.keyboard.press("Tab")
    expect(variations.get_by_role("button").nth(1)).to_contain_text("✎")
    assert serious(page) == []
    page.reload()
    expect(variations.get_by_role("button")).to_have_count(2)
    expect(page.get_by_role("textbox", name="Comment")).to_have_value("A quiet line")
    with page.expect_download() as download:
        page.get_by_role("link", name="KIF").click()
    download.value.save_as(tmp_path / "game.kif")
    record = read_record(tmp_path / "game.kif")
    tree = read_tree((tmp_path / "game.kif").read_text("cp932"), record)
    moves = [(one.move, one.comment) for one in tree.variations]
    assert moves == [("6g6f", ""), ("8c8d", "A quiet line")]
    page.keyboard.press("ArrowLeft")
    page.get_by_role("button", name="Remove this variation").click()
    expect(variations).to_have_count(0)
    expect(page.get_by_role("slider", name="Move")).to_have_value("2")


def test_a_position_is_analysed_deeper_and_deeper_while_one_looks(open_page, serve, tmp_path):
    page = open_page(f"{serve(tmp_path)}/#/yours")
    page.get_by_role("textbox", name="Review a game").fill("startpos moves 7g7f 3c3d")
    page.get_by_role("button", name="Review").click()
    panel = page.get_by_role("region", name="Analysis")
    panel.get_by_role("button", name="Analyse").click()
    expect(panel.get_by_role("listitem")).to_have_count(3)
    expect(page.locator(".arrow")).to_have_count(3)
    expect(panel.get_by_text(re.compile(r"\d,\d{3} positions"))).to_be_visible()  # it goes on
    assert serious(page) == []
    with page.expect_event("requestfailed", lambda one: "node=0" in one.url):
        page.keyboard.press("ArrowRight")  # it stays on, and what was begun is left
    expect(panel.get_by_role("listitem")).to_have_count(3)
    panel.get_by_role("button", name=re.compile("^Play ")).nth(2).click()
    expect(page.get_by_role("slider", name="Move")).to_have_value("2")
    page.set_viewport_size({"width": 375, "height": 720})
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    with page.expect_event("requestfailed", lambda one: "analysis/stream" in one.url):
        panel.get_by_role("button", name="Analyse").click()
    expect(panel.get_by_role("listitem")).to_have_count(0)
