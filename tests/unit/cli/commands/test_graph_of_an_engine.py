"""The engine is named in the picture of a flow, and one that cannot run it is refused."""

import pytest

import cutwater as cw
from cutwater.cli.commands.graph import draw, on_engine
from cutwater.errors import RefusedError


@pytest.fixture
def flow():
    made = cw.Flow("copy <all>")
    made.source("here", int).sink("there")
    return made


def test_mermaid_has_it_as_a_title(flow):
    drawn = draw(flow, "mermaid")
    titled = on_engine(flow, drawn, "mermaid", "realtime")
    assert titled.splitlines()[:3] == [
        "---",
        'title: "copy <all>, on the real-time engine: rows are released with their tick, about '
        'every 10 ms, before a snapshot"',
        "---",
    ]
    assert titled.endswith(drawn)


def test_svg_has_it_as_a_title(flow):
    titled = on_engine(flow, draw(flow, "svg"), "svg", "microbatch")
    assert (
        "<title>copy &lt;all&gt;, on the micro-batch engine: rows are released with their" in titled
    )


def test_an_engine_that_there_is_not_is_refused(flow):
    with pytest.raises(RefusedError, match="mode is 'fast'"):
        on_engine(flow, "", "mermaid", "fast")


def test_a_loop_is_not_drawn_for_real_time():
    flow = cw.Flow("rounds")
    flow.source("numbers", int).iterate(lambda body: body.filter(bool)).sink("out")
    with pytest.raises(RefusedError, match="loop"):
        on_engine(flow, draw(flow, "mermaid"), "mermaid", "realtime")
