"""The page in a real browser, opened as a file."""

import re

import pytest
from support.report import toy_runs

from cutwater.report.html import render_html

pytestmark = pytest.mark.browser


@pytest.fixture
def load(browser, tmp_path):
    """Open a report at an address in it."""

    def load(explanation=None, address="", **media):
        path = tmp_path / "report.html"
        path.write_text(render_html(explanation or toy_runs.shown_run()), encoding="utf-8")
        return browser.open(path.as_uri() + address, **media)

    return load


def rows(page) -> list[list[str]]:
    """The tasks in the panel: name, epoch, state, snapshots."""
    return page.value(
        "[...document.querySelectorAll('.tasks tbody tr')]"
        ".map(row => [...row.cells].map(cell => cell.innerText))"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_loads_without_a_complaint_or_a_request(load, scheme):
    page = load(**{"prefers-color-scheme": scheme})
    assert page.text("h1") == "word-count"
    assert page.text("#verdict").startswith("explained: an observer cannot tell")
    assert page.count("#diagram a.step") == 32 + 21
    ground = page.value("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(17, 22, 29)"}[scheme]
    page.press("ArrowRight", "End")
    assert page.complaints == []
    assert [url.split(":")[0] for url in page.requests if not url.startswith("data:")] == ["file"]


def test_keys_move_the_cursor(load):
    page = load()
    assert page.text("#panel h2") == "before the first step"
    page.press("ArrowRight", "j", "ArrowRight")
    assert page.value("location.hash") == "#step=2"
    page.press("ArrowLeft", "k")
    assert page.value("location.hash") == "#step=0"
    page.press("End")
    assert page.value("location.hash") == "#step=31"
    page.press("ArrowRight")
    assert page.value("location.hash") == "#step=31"
    page.press("Home")
    assert page.value("location.hash") == "#start"


def test_space_plays_and_pauses(load):
    page = load()
    page.press(" ")
    assert page.value("document.getElementById('play').getAttribute('aria-pressed')") == "true"
    page.value(
        "new Promise(resolve => { const look = () => location.hash === '#step=1' ? resolve() "
        ": setTimeout(look, 10); look(); })"
    )
    page.press(" ")
    assert page.value("document.getElementById('play').getAttribute('aria-pressed')") == "false"


def test_buttons_and_the_scrubber_move_the_cursor(load):
    page = load()
    page.value("document.getElementById('forward').click()")
    assert page.value("location.hash") == "#step=0"
    page.value(
        "(() => { const scrub = document.getElementById('scrub'); scrub.value = 13;"
        "scrub.dispatchEvent(new Event('input')); })()"
    )
    assert page.text("#panel h2") == "all tasks go back to the snapshots of epoch 1"


def test_the_panel_tells_what_a_step_does(load):
    page = load(address="#step=3")
    assert page.text("#panel h2") == "count processes an event of epoch 1"
    assert "rule I-Event" in page.text("#panel .kicker")
    facts = re.split(r"\s*\n\s*", page.text("#panel .facts"))
    assert facts == ["consumes", "'be' on words", "produces", "['be', 1] on counts"]


def test_a_failure_loses_a_state_and_a_recovery_brings_back_a_snapshot(load):
    page = load(address="#step=8")
    states = "{'to': 1, 'be': 1, 'or': 1, 'not': 1}"
    assert rows(page) == [["split", "2", "3", "0, 1"], ["count", "2", states, "0, 1"]]
    page.press("ArrowRight")
    assert rows(page)[1] == ["count", "–", "failed, state lost", "0, 1"]
    page.press("ArrowRight", "ArrowRight")
    assert rows(page)[0] == ["split", "3", "4", "0, 1, 2"]
    page.press("ArrowRight", "ArrowRight")
    assert rows(page) == [["split", "2", "2", "0, 1"], ["count", "2", states, "0, 1"]]


def test_both_observers_see_the_same_at_every_step(load):
    page = load()
    seen = []
    for _ in range(32):
        page.press("ArrowRight")
        assert page.text(".observers .equal") == "="
        seen.append(page.count(".observers > div:first-child .chip"))
    assert seen == [0] * 7 + [4] * 17 + [8] * 7 + [8]


def test_an_address_names_a_step_and_the_browser_goes_back_to_it(load):
    page = load(address="#step=12")
    assert page.text("#panel .kicker").startswith("step 12, generation 1")
    assert (
        page.address_after(
            "document.querySelector('a[href=\"#step=20\"]').dispatchEvent("
            "new MouseEvent('click', {bubbles: true}))"
        )
        == "#step=20"
    )
    assert page.text("#panel .kicker").startswith("step 20,")
    page.press("End")
    assert page.address_after("history.back()") == "#step=20"
    assert page.address_after("history.back()") == "#step=12"
    assert page.text("#panel .kicker").startswith("step 12,")
    assert page.address_after("history.forward()") == "#step=20"
    assert page.text("#panel .kicker").startswith("step 20,")


@pytest.mark.parametrize("address", ["#step=99999", "#step=-3", "#step=x", "#elsewhere", "#step="])
def test_an_address_of_no_step_is_bounded(load, address):
    page = load(address=address)
    assert page.text("#position") in ("step 31 / 31", "start, 32 steps")
    assert page.complaints == []


def test_hostile_values_stay_text(load):
    hostile = "</script><img src=x onerror=document.title='owned'>"
    epochs = [[hostile, "<b>bold</b> {{script}}"]]
    page = load(toy_runs.word_count(epochs).play(0).explained(), "#step=0")
    title = page.value("document.title")
    page.press(*["ArrowRight"] * 6, "Home", *["ArrowRight"] * 6)
    assert page.value("document.title") == title == "word-count: a run explained"
    assert page.count("img") == page.count("b") == 0
    assert "<b>bold</b>" in page.text("#panel")
    assert page.complaints == []


def test_a_refused_run_opens_where_it_fails(load):
    explanation = toy_runs.impure_run()
    page = load(explanation)
    step = explanation.refusal.step
    assert page.text("#verdict").startswith(f"not explained: at step {step} 'count' was given the")
    assert page.text("#panel .kicker").startswith(f"step {step},")
    assert page.count("#diagram .column.is-refused") == 1
    page.press(*["ArrowRight"] * 30)
    assert page.complaints == []


@pytest.mark.parametrize("steps", [2_000, 20_000])
def test_of_a_long_run_a_window_is_drawn(load, steps):
    explanation = toy_runs.long_run(steps)
    total = len(explanation.trace.steps)
    assert total >= steps
    page = load(explanation, f"#step={total // 2}")
    assert page.text("#panel .kicker").startswith(f"step {total // 2},")
    for key in ("ArrowRight", "End", "Home"):
        page.press(key)
        assert page.text(".observers .equal") == "="
        assert 40 < page.count("#diagram a.step") <= 2 * 200
        assert page.count("svg *") < 2_500
        assert page.count("#panel *") < 300
    assert page.complaints == []


@pytest.mark.parametrize("fails", [[], [(4, "average")]])
def test_small_runs_load(load, fails):
    page = load(toy_runs.averages(2).play(1, fails).explained(), "#step=4")
    assert page.complaints == []
    assert page.count(".stream") == 3


def test_a_run_without_steps_loads(load):
    page = load(toy_runs.word_count().explained())
    page.press("ArrowRight", "End", "Home")
    assert page.text("#panel h2") == "before the first step"
    assert page.complaints == []


def test_long_names_stay_in_the_picture(load):
    task = toy_runs.TaskShape("W" * 300, ("i" * 300,), "out", 0)
    run = toy_runs.ToyRun(
        "W" * 300, [toy_runs.ToyTask(task, toy_runs.split)], {"i" * 300: (("a",),)}
    )
    page = load(run.play(0).explained())
    leaving = page.value(
        "(() => { const page = document.getElementById('diagram').getBoundingClientRect();"
        "return [...document.querySelectorAll('#diagram text')]"
        ".filter(text => text.getBoundingClientRect().left < page.left - 1).length; })()"
    )
    assert leaving == 0
    assert page.value("document.documentElement.scrollWidth") <= 1400


def test_everything_that_can_be_pressed_has_a_name(load):
    page = load(address="#step=5")
    unnamed = page.value(
        "[...document.querySelectorAll('button, input, a')]"
        ".filter(e => !(e.getAttribute('aria-label') || e.textContent.trim())).length"
    )
    assert unnamed == 0
    assert page.text("#announced") == "step 5: count processes an event of epoch 1"
