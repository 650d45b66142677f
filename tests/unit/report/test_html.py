"""The page as a text: it is whole, and nothing in the data can become a part of it."""

import json
import re

import pytest
from support.report import toy_runs

from cutwater.errors import InputError
from cutwater.report import html, timeline_of
from cutwater.report.html import render_html

HOSTILE = ["</script><img src=x onerror=alert(1)>", "<!--<script>", "{{script}}", "&lt;b&gt;"]


def embedded(page: str) -> dict:
    found = re.findall(r'<script type="application/json" id="timeline">(.*?)</script>', page, re.S)
    assert len(found) == 1
    return json.loads(found[0])


def test_the_data_in_the_page_is_the_timeline():
    explanation = toy_runs.shown_run()
    assert embedded(render_html(explanation)) == json.loads(timeline_of(explanation).json())


def test_the_same_explanation_gives_the_same_page():
    assert render_html(toy_runs.shown_run()) == render_html(toy_runs.shown_run())


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_value_stays_in_the_data(hostile):
    calm, page = (
        render_html(toy_runs.word_count([[line]]).play(0).explained()) for line in ("calm", hostile)
    )
    assert page.count("<") == calm.count("<")
    assert embedded(page)["messages"][0]["text"] == repr(hostile)


def test_a_hostile_name_stays_in_the_title():
    page = render_html(toy_runs.word_count([]).explained()).replace("word-count", "")
    run = toy_runs.ToyRun("</title><script>{{data}}", [], {})
    named = render_html(run.explained())
    assert named.count("<script") == page.count("<script") == 2
    assert "<title>&lt;/title&gt;&lt;script&gt;{{data}}: a run explained</title>" in named


def test_the_page_refers_to_nothing_outside():
    page = render_html(toy_runs.shown_run())
    addresses = set(re.findall(r"https?://[^\s\"']*", page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, never fetched
    assert not re.search(r"\bsrc=|@import|url\((?!#)", page)
    assert "{{" not in page


def test_only_its_own_script_may_run():
    page = render_html(toy_runs.shown_run())
    assert re.search(r"default-src 'none'; .*script-src 'sha256-[A-Za-z0-9+/]{43}='", page)


def test_a_run_that_is_too_long_for_a_page_is_a_sentence(monkeypatch):
    monkeypatch.setattr(html, "MOST_STEPS", 3)
    with pytest.raises(InputError, match="too-long-for-a-page") as caught:
        render_html(toy_runs.shown_run())
    assert "head -n 4" in caught.value.problems[0].hint
