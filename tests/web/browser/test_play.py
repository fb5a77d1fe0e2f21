"""Games between a person with a mouse, or a keyboard, and an agent."""

import re

from playwright.sync_api import expect

from keisei.shogi.records import read_record
from tests.web.browser.conftest import serious

# Black has a pawn in hand, and a silver that promotes on its first move into the camp.
QUIET = "8k/9/9/3S5/9/9/9/9/4K4 b GP 1"  # its king reaches nothing in two moves
MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
MY_MOVE = re.compile("Your move|You are in check")


def fill_in(page, sfen=None, side="Black"):
    """Fill in the form for a quick opponent, and send it."""
    page.get_by_role("slider", name="Strength").fill("0")
    page.get_by_role("radio", name=side).check()
    if sfen:
        page.get_by_role("combobox", name="Start").select_option("sfen")
        page.get_by_role("textbox", name="SFEN").fill(sfen)
    page.get_by_role("button", name="Start the game").click()


def start(page, sfen=None, side="Black"):
    """Begin a game, and wait for its board: the form has one with the same pieces."""
    fill_in(page, sfen, side)
    expect(page.locator("p.status")).to_be_visible()


def square(page, name):
    return page.locator(f'.squares [data-square="{name}"]')


def my_turn(page, number):
    """Wait until the agent has answered, and it is the person's turn with so many moves played."""
    expect(page.get_by_role("status").filter(has_text=MY_MOVE)).to_be_visible()
    expect(page.locator("ol.moves li")).to_have_count(number)


def test_who_has_trained_nothing_plays_against_levels_of_known_strength(open_page, serve, tmp_path):
    page = open_page(serve(tmp_path / "no runs yet"))
    page.get_by_role("link", name="Play").first.click()
    expect(page.get_by_role("combobox", name="Opponent")).to_have_value("levels")
    strength = page.get_by_role("slider", name="Strength")
    strength.fill("1")
    expect(strength).to_have_attribute("aria-valuetext", re.compile("^First month: instinct"))
    expect(page.get_by_text(re.compile(r"Elo [\d,]+, measured between"))).to_be_visible()
    start(page)
    expect(page.locator(".player-line").first).to_contain_text("Keisei, First week")
    my_turn(page, 0)
    square(page, "7g").click()
    square(page, "7f").click()
    my_turn(page, 2)


def test_any_time_of_a_runs_life_is_an_opponent(open_page, address):
    page = open_page(f"{address}/#/play?run=first")
    expect(page.get_by_role("combobox", name="Opponent")).to_have_value("run/first")
    age = page.get_by_role("slider", name="Trained for")
    expect(age).to_have_attribute("aria-valuetext", "1,024 steps")
    age.fill("0")
    expect(age).to_have_attribute("aria-valuetext", "512 steps")
    start(page)
    expect(page.get_by_role("heading", name="Game against first, step 512")).to_be_attached()


def test_a_first_move_on_the_board_begins_the_game(open_page, serve, tmp_path):
    page = open_page(f"{serve(tmp_path)}/#/play")
    square(page, "7g").click()
    square(page, "7f").click()
    my_turn(page, 2)
    expect(page.locator("ol.moves li").first).to_contain_text("P-7f")


def test_a_game_with_a_drop_a_promotion_and_a_resignation(open_page, address, tmp_path):
    page = open_page(f"{address}/#/play?run=first", accept_downloads=True)
    start(page, QUIET)
    page.get_by_role("button", name="black pawn in hand, 1").click()
    expect(page.locator(".target")).not_to_have_count(0)
    square(page, "1e").click()
    my_turn(page, 2)
    square(page, "6d").click()
    square(page, "6c").click()
    expect(page.get_by_role("button", name="Promote to promoted silver")).to_be_visible()
    assert serious(page) == []
    page.get_by_role("button", name="Promote to promoted silver").click()
    my_turn(page, 4)
    expect(square(page, "6c")).to_have_attribute("aria-label", "6 c, black promoted silver")
    square(page, "6c").click()  # a second thought: chosen, and put back
    square(page, "6c").click()
    expect(page.locator(".target")).to_have_count(0)
    page.get_by_role("button", name="Resign").click()
    page.get_by_role("dialog").get_by_role("button", name="Resign").click()
    told = page.get_by_role("status").filter(has_text="Keisei wins: you resigned.")
    expect(told).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="KIF").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    record = read_record(path)
    assert [str(move) for move in record.moves[::2]] == ["P*1e", "6d6c+"]


def test_a_drop_that_mates_wins(open_page, address):
    page = open_page(f"{address}/#/play?run=first")
    start(page, MATE_IN_ONE)
    page.get_by_role("button", name="black gold in hand, 1").click()
    square(page, "5b").click()
    expect(page.get_by_text("You win")).to_have_count(1)  # said once, and nothing covers the board
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(square(page, "5b")).to_have_attribute("aria-label", "5 b, black gold")
    expect(page.locator(".value")).to_contain_text("Your chance to win 100 %")
    page.get_by_role("button", name="Rematch").click()
    expect(page.get_by_role("status").filter(has_text="Your move")).to_be_visible()
    expect(page.get_by_role("button", name="black gold in hand, 1")).to_be_visible()


def test_on_a_phone_the_end_of_a_game_is_in_sight_beside_the_board(open_page, address):
    phone = {"width": 375, "height": 667}
    page = open_page(f"{address}/#/play?run=first", viewport=phone)
    start(page, MATE_IN_ONE)
    page.get_by_role("button", name="black gold in hand, 1").click()
    square(page, "5b").click()
    for part in (page.get_by_text("You win"), page.get_by_role("link", name="Review")):
        expect(part).to_be_in_viewport(ratio=1)
        covered = """(e) => { const { x, y } = e.getBoundingClientRect();
            return !e.contains(document.elementFromPoint(x + 3, y + 3)); }"""
        assert not part.evaluate(covered)
    expect(page.locator(".squares")).to_be_in_viewport(ratio=1)


def test_a_person_may_undo_and_resign_while_the_agent_thinks(open_page, address):
    page = open_page(f"{address}/#/play?run=first")
    page.get_by_role("slider", name="Strength").fill("8")  # it thinks for seconds
    thinks = page.get_by_role("status").filter(has_text="is thinking")
    square(page, "7g").click()
    square(page, "7f").click()
    expect(thinks).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status").filter(has_text="Your move")).to_be_visible()
    expect(page.locator("ol.moves li")).to_have_count(0)
    square(page, "7g").click()
    square(page, "7f").click()  # the same position again: it thinks again
    expect(thinks).to_be_visible()
    page.get_by_role("button", name="Resign").click()
    page.get_by_role("dialog").get_by_role("button", name="Resign").click()
    expect(page.get_by_role("status").filter(has_text="you resigned")).to_be_visible()


def test_chances_are_the_players_own_and_said_once(open_page, address):
    page = open_page(f"{address}/#/play?run=first")
    start(page, side="White")
    my_turn(page, 1)
    page.get_by_role("button", name="Hint").click()
    expect(page.locator(".hints .worth").first).to_contain_text("%")
    expect(page.get_by_text("Your chance to win")).to_have_count(1)
    assert "Value for Black" not in page.locator("main").inner_text()
    assert serious(page) == []  # a game in play
    page.emulate_media(color_scheme="dark")
    assert serious(page) == []
    page.get_by_role("button", name="Resign").click()
    assert serious(page) == []  # an open dialog
    page.set_viewport_size({"width": 375, "height": 720})
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_the_first_move_of_a_game_is_the_agents_when_a_person_plays_white(open_page, address):
    page = open_page(f"{address}/#/play?run=first")
    start(page, side="White")
    my_turn(page, 1)
    # White sits below: the square in the lower right corner is 9a.
    assert page.locator(".squares button").last.get_attribute("data-square") == "9a"


def test_a_piece_is_dragged(open_page, address):
    page = open_page(f"{address}/#/play?run=first")
    start(page)
    expect(page.get_by_role("status").filter(has_text="Your move")).to_be_visible()
    square(page, "7g").hover()
    page.mouse.down()
    square(page, "7f").hover()
    expect(page.locator(".dragged")).to_be_visible()
    page.mouse.up()
    my_turn(page, 2)
    expect(square(page, "7f")).to_have_attribute("aria-label", "7 f, black pawn")


def test_a_game_is_played_with_the_keyboard_alone(open_page, address):
    page = open_page(f"{address}/#/play?run=first")
    start(page)
    expect(page.get_by_role("status").filter(has_text="Your move")).to_be_visible()
    square(page, "5i").focus()
    for key in ("ArrowUp", "ArrowUp", "ArrowLeft", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    expect(square(page, "7g")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(square(page, "7g")).to_have_attribute("aria-selected", "false")
    for key in ("Enter", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    my_turn(page, 2)
    expect(page.locator("ol.moves li").first).to_contain_text("P-7f")


def test_hints_are_shown_and_moves_taken_back(open_page, address):
    page = open_page(f"{address}/#/play?run=first")
    start(page)
    expect(page.get_by_role("status").filter(has_text="Your move")).to_be_visible()
    page.get_by_role("button", name="Hint").click()
    hints = page.get_by_label("The policy's moves").locator("button")
    expect(hints.first).to_contain_text("%")
    expect(page.locator(".arrow.best")).to_have_count(1)
    hints.first.click()
    my_turn(page, 2)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("ol.moves li")).to_have_count(0)
    expect(page.get_by_role("status").filter(has_text="Your move")).to_be_visible()


def test_a_position_that_cannot_be_is_refused_in_words(open_page, address):
    page = open_page(f"{address}/#/play?run=first", expected=["400", "422"])
    fill_in(page, "nonsense")
    expect(page.locator("form").get_by_role("alert")).to_contain_text("nonsense")


def test_clocks_run(open_page, address):
    page = open_page(f"{address}/#/play?run=first")
    page.get_by_label("Clock").select_option("0+30")
    start(page)
    expect(page.locator(".clock")).to_have_count(2)
    expect(page.locator(".clock.running")).to_have_text(re.compile(r"0:(30|2\d)"))


def test_a_move_is_heard_by_those_who_want_to(open_page, address):
    page = open_page(f"{address}/#/play?run=first")
    page.evaluate(
        """() => {
          window.heard = 0;
          const start = AudioBufferSourceNode.prototype.start;
          AudioBufferSourceNode.prototype.start = function () { window.heard++; start.call(this); };
        }"""
    )
    start(page)
    square(page, "7g").click()
    square(page, "7f").click()
    my_turn(page, 2)
    assert page.evaluate("heard") == 0
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("group", name="Sound of moves").get_by_label("On").check()
    assert serious(page) == []
    page.keyboard.press("Escape")
    square(page, "2g").click()
    square(page, "2f").click()
    my_turn(page, 4)
    # Right after the move is seen. (An expression would be evaluated, which the page forbids.)
    page.wait_for_function("() => heard === 2")
