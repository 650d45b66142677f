"""The page of a flow's guarantees in a real browser, opened as a file."""

from dataclasses import dataclass

import pytest

import cutwater as cw
from cutwater.checking.guarantees.order_sensitivity import order_sensitivity
from cutwater.flow.guarantees.end_to_end import AT_LEAST_ONCE, EXACTLY_ONCE, SinkPart, SourcePart
from cutwater.flow.guarantees.settings import setting_of
from cutwater.report.guarantee_page import render_guarantees

pytestmark = pytest.mark.browser


@dataclass(frozen=True)
class Order:
    shop: str
    cents: int


@cw.task(initial=0)
def newest(_: int, order: Order) -> tuple[int, list[Order]]:
    return order.cents, [order]


def page_of(name="shops"):
    """A flow of which one edge holds, one depends on order, and one is weak."""
    flow = cw.Flow(name)
    orders = flow.source("orders", Order)
    flow.sink("raw", orders)
    flow.sink("latest", orders.key_by("shop").apply(newest))
    flow.sink("mails", orders.filter(bool, name="some"))
    inputs = {"orders": [Order("a", 1), Order("a", 2)]}
    sinks = [
        SinkPart("raw", EXACTLY_ONCE, "commits"),
        SinkPart("latest", EXACTLY_ONCE, "commits"),
        SinkPart("mails", AT_LEAST_ONCE, "sends <b>mails</b>"),
    ]
    sources = {"orders": SourcePart("orders", True, False, "")}
    setting = setting_of(flow, "configured", "as <i>run.toml</i> says", sources, sinks)
    return render_guarantees(flow, order_sensitivity(flow, inputs), [setting])


@pytest.fixture(scope="module")
def text():
    return page_of()


@pytest.fixture
def load(browser, tmp_path, text):
    def load(**media):
        path = tmp_path / "guarantee.html"
        path.write_text(text, encoding="utf-8")
        return browser.open(path.as_uri(), **media)

    return load


def styles(page, status):
    """Colour, dashes and title of the edges of a sort."""
    return page.value(
        f"[...document.querySelectorAll('.cw-{status}')].map(edge => "
        "[getComputedStyle(edge.querySelector('path')).stroke, "
        "getComputedStyle(edge.querySelector('path')).strokeDasharray, "
        "edge.querySelector('title').textContent])"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_loads_without_a_complaint_or_a_request(load, scheme):
    page = load(**{"prefers-color-scheme": scheme})
    assert page.text("h1") == "shops: what it guarantees"
    ground = page.value("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(17, 22, 29)"}[scheme]
    assert page.complaints == []
    assert [url.split(":")[0] for url in page.requests if not url.startswith("data:")] == ["file"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_edge_is_drawn_by_what_holds_there(load, scheme):
    page = load(**{"prefers-color-scheme": scheme})
    edges = {status: styles(page, status) for status in ("holds", "order", "weak")}
    assert {status: len(found) for status, found in edges.items()} == {
        "holds": 4,
        "order": 1,
        "weak": 1,
    }
    assert len({found[0][0] for found in edges.values()}) == 3  # colours
    assert len({found[0][1] for found in edges.values()}) == 3  # and lines without them
    assert "`newest` does not claim to be commutative" in edges["order"][0][2]


def test_reasons_and_the_key_stand_below_the_picture(load):
    page = load()
    assert page.count(".key li") == 3
    reasons = page.value(
        "[...document.querySelectorAll('.reason')].map(r => [r.dataset.status, r.innerText])"
    )
    assert ["weak", "some → mails: mails sends <b>mails</b>"] in reasons
    assert page.count(".reason b, h2 i") == 0
    assert page.text("details pre") == ""  # closed until somebody looks
    page.value("document.querySelector('details').open = true")
    assert "the order of two events of one key matters" in page.text("details pre")


def test_nothing_is_wider_than_the_page(load):
    page = load()
    assert page.value("document.body.scrollWidth <= innerWidth")


def test_it_is_the_same_for_the_same_flow(text):
    assert page_of() == text
    assert "<script>" not in page_of("<script>")
