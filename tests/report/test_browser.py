"""The page in headless Chromium: it renders, the replay works by mouse and keyboard, hostile text stays text."""

import dataclasses
import os
import shutil
from datetime import datetime

import pytest

from dprm.evaluate.replays import Recording, Replays
from dprm.report.page import page
from dprm.report.runs import Run
from tests.report.hostile import SCRIPT

api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: install it, or name it in the variable CHROMIUM"),
]


@pytest.fixture(scope="module")
def browser():
    with api.sync_playwright() as playwright:
        # Containers run as root, where Chromium has no sandbox.
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def plain(tmp_path_factory, card):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page([Run("toy", card)]))
    return path


@pytest.fixture
def opened(browser):
    """Opens a page; nothing may be said on the console, and nothing fetched, until the test ends."""
    pages, said = [], []

    def at(path, **settings):
        shown = browser.new_page(**settings)
        pages.append(shown)
        shown.on("console", lambda message: said.append(message.text))
        shown.on("pageerror", lambda error: said.append(str(error)))
        shown.on("request", lambda request: request.url.startswith(("file:", "data:")) or said.append(request.url))
        shown.goto(path.as_uri())
        return shown

    yield at
    assert said == []
    for shown in pages:
        shown.close()


def canvases(shown):
    """The text of the two canvases, position by position."""
    return [
        [cell.text_content() for cell in side.query_selector_all(".glyph")]
        for side in shown.query_selector_all(".canvas")
    ]


def hidden(shown):
    return [sum(text == "·" for text in canvas) for canvas in canvases(shown)]


def test_every_chart_is_drawn(opened, plain):
    shown = opened(plain)
    boxes = [chart.bounding_box() for chart in shown.query_selector_all("figure svg")]
    assert len(boxes) == 3
    assert all(box["width"] > 100 and box["height"] > 50 for box in boxes)
    points = shown.locator("figure svg .mark-symbol path")
    colours = {points.nth(index).evaluate("mark => getComputedStyle(mark).fill") for index in range(points.count())}
    assert {"rgb(89, 97, 110)", "rgb(11, 85, 99)"} <= colours


def test_the_slider_moves_both_canvases(opened, plain):
    shown = opened(plain)
    slider = shown.locator(".replay input[type=range]")
    for step in (0, 1, 3, 4):
        slider.fill(str(step))
        assert hidden(shown) == [4 - step, 4 - step]
        assert shown.locator(".side .fresh").count() == (2 if step else 0)
    assert "Step 4 of 4" in shown.locator("output").text_content()


def test_the_keyboard_is_enough(opened, plain):
    shown = opened(plain)
    slider = shown.locator(".replay input[type=range]")
    slider.focus()
    shown.keyboard.press("Home")
    assert hidden(shown) == [4, 4]
    shown.keyboard.press("ArrowRight")
    shown.keyboard.press("ArrowRight")
    assert hidden(shown) == [2, 2]
    shown.keyboard.press("ArrowLeft")
    assert hidden(shown) == [3, 3]
    shown.keyboard.press("End")
    assert hidden(shown) == [0, 0]
    shown.keyboard.press("Tab")
    assert shown.evaluate("document.activeElement.tagName") == "BUTTON"


def test_play_goes_on_to_the_end_and_stops(opened, plain):
    shown = opened(plain)
    # An installed clock goes on by itself until it is paused: on a busy machine it would play ahead.
    shown.clock.install(time=datetime(2026, 1, 1))
    shown.reload()
    shown.clock.pause_at(datetime(2026, 1, 2))
    shown.locator(".replay input[type=range]").fill("0")
    play = shown.locator("[data-play]")
    play.click()
    assert play.text_content() == "Pause"
    shown.clock.run_for(450)
    assert hidden(shown) == [3, 3]
    shown.clock.run_for(450 * 4)
    assert hidden(shown) == [0, 0]
    assert play.text_content() == "Play"


def test_the_replay_says_where_two_orders_part(opened, plain):
    shown = opened(plain)
    shown.locator(".replay input[type=range]").fill("4")
    shown.get_by_role("button", name="Where they part").click()
    step = int(shown.locator(".replay input[type=range]").input_value())
    whens = [
        [int(when.text_content()) for when in side.query_selector_all(".when")]
        for side in shown.query_selector_all(".canvas")
    ]
    reveals = [[[p for p, at in enumerate(side) if at == s] for s in range(1, 5)] for side in whens]
    assert reveals[0][: step - 1] == reveals[1][: step - 1]
    assert reveals[0][step - 1] != reveals[1][step - 1]
    assert "they part here" in shown.locator("output").text_content()
    assert shown.locator(".mark.first .flag").count() == 1
    shown.locator("[data-order='1']").select_option("confidence")
    assert "the same order throughout" in shown.locator("output").text_content()
    assert shown.locator(".mark.apart").count() == 0
    assert shown.get_by_role("button", name="Where they part").is_disabled()


def test_hostile_text_stays_text(opened, hostile_page):
    shown = opened(hostile_page)
    seen = set()
    for index in range(3):
        shown.locator("[data-order='1']").select_option(index=index)
        shown.locator(".replay input[type=range]").fill("4")
        seen.update(text for canvas in canvases(shown) for text in canvas)
    assert seen == {SCRIPT, "abc⟨U+202E⟩def⟨U+2067⟩⟨U+200F⟩"}
    assert shown.evaluate("window.hacked") is None
    assert shown.locator("img, main b, main script:not([type])").count() == 0
    assert shown.locator(".canvas.grid").count() == 2


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_window(opened, plain, width):
    shown = opened(plain, viewport={"width": width, "height": 800})
    assert shown.evaluate("document.documentElement.scrollWidth") <= width


def test_by_night_the_paper_is_dark_and_in_print_it_is_white_and_unfolded(opened, plain):
    shown = opened(plain, color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    assert shown.evaluate(paper) == "rgb(21, 23, 27)"
    shown.emulate_media(media="print")
    assert shown.evaluate(paper) == "rgb(255, 255, 255)"
    assert not shown.locator(".controls").is_visible()
    shown.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert shown.locator("details:not([open])").count() == 0
    shown.evaluate("dispatchEvent(new Event('afterprint'))")
    assert shown.locator("details[open]").count() == 0


def test_a_replay_opens_where_the_texts_differ_and_draws_the_end_as_such(opened, tmp_path, card):
    """Both sides end with the same padding, revealed at other times: that is no place to open at."""
    recording = {
        "confidence": Recording(0.0, "1 0 9 9", "3 4 1 2", "900 900 900 900"),
        "random": Recording(1.0, "1 1 9 9", "3 4 2 1", "900 900 900 900"),
    }
    replays = Replays({"0": "0 ", "1": "1 ", "9": "pad", "·": "·"}, None, [recording], end="9")
    (tmp_path / "end.html").write_text(page([Run("end", dataclasses.replace(card, replays=replays))]))
    shown = opened(tmp_path / "end.html")
    assert "Step 4 of 4" in shown.locator("output").text_content()
    assert shown.locator(".side .cell.end").count() == 4
    assert canvases(shown)[0][2:] == ["∎", "∎"]
    shown.locator(".replay input[type=range]").fill("1")
    assert shown.locator("[data-now]").first.text_content() == "reveals the end of the text in 1 place"
