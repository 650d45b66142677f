"""Pictures of flows: pinned ones, hostile names, and colours that can be read."""

import re
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.flows.sensors import Reading, Reset
from support.repo.pinned import assert_pinned

import cutwater as cw
from cutwater.cli.commands.graph import draw
from cutwater.flow import plan
from cutwater.flow.drawing import mermaid, svg
from cutwater.flow.drawing.diagram import diagram_of
from cutwater.flow.drawing.palette import COLOURS, LEGIBLE
from cutwater.flow.drawing.text_width import NAME, SMALL, clean

SNAPSHOTS = Path(__file__).parents[2] / "snapshots" / "drawing"
FORMATS = {"mermaid": "mmd", "svg": "svg"}


@dataclass(frozen=True)
class Mean:
    sensor: str
    value: float


@cw.task(initial=0.0)
def running_average(state: float, event: Reading | Reset) -> tuple[float, list[Mean]]:
    return state, []


@cw.task(initial=0)
def alarm(state: int, event: Mean) -> tuple[int, list[str]]:
    return state, []


def is_plausible(reading: Reading) -> bool:
    return True


def calibrated(reading: Reading) -> Reading:
    return reading


def is_high(mean: Mean) -> bool:
    return True


def difference(left: Reading, right: Reading) -> Mean | None:
    return None


def averages() -> cw.Flow:
    flow = cw.Flow("averages")
    readings = flow.source("readings", Reading, time="at")
    readings.filter(is_plausible).key_by("sensor").apply(running_average).sink("means")
    return flow


def resets() -> cw.Flow:
    flow = cw.Flow("averages with resets")
    readings = flow.source("readings", Reading, time="at")
    both = readings.merge(flow.source("resets", Reset, time="at"))
    means = both.key_by("sensor").apply(running_average)
    means.sink("means")
    means.filter(is_high).sink("alarms")
    return flow


def plant() -> cw.Flow:
    """A flow with everything: forks, a join, long edges, both sorts of exchanges."""
    flow = cw.Flow("plant")
    readings = flow.source("readings", Reading, time="at")
    weather = flow.source("weather", Reading, time="at")
    resets = flow.source("resets", Reset, time="at")
    clean = readings.filter(is_plausible).map(calibrated).map(calibrated, name="in_kelvin")
    inside = clean.key_by("sensor", name="by_inside")
    outside = weather.map(calibrated, name="calibrated_weather").key_by("sensor", name="by_outside")
    compared = inside.join(outside, difference, name="compare")
    compared.sink("differences")
    keyed = clean.key_by("sensor").merge(resets.key_by("sensor", name="by_reset_sensor"))
    means = keyed.apply(running_average)
    means.sink("means")
    alarms = means.filter(is_high).apply(alarm)
    alarms.sink("alarms")
    counted = alarms.key_by(len, name="by_length").aggregate(n=cw.agg.count(), name="how_many")
    counted.sink("counts")
    readings.histogram(unbounded=True).sink("histogram")
    alarms.merge(compared, readings).batch(name="archive_batch").sink("archive")
    return flow


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("flow", [averages, resets, plant], ids=lambda flow: flow.__name__)
def test_pictures_are_pinned(flow, format):
    assert_pinned(SNAPSHOTS / f"{flow.__name__}.{FORMATS[format]}", draw(flow(), format))


def test_an_unknown_format_gets_a_sentence():
    with pytest.raises(cw.CutwaterError, match="there is no format 'png'"):
        draw(averages(), "png")


@pytest.mark.parametrize("picture", [mermaid, svg])
def test_a_flow_with_problems_is_not_drawn(picture):
    with pytest.raises(cw.FlowError, match="no-sink"):
        picture(cw.Flow("empty"))


@pytest.mark.parametrize("picture", [mermaid, svg])
def test_a_plan_is_drawn_like_its_flow(picture):
    flow = plant()
    assert picture(plan(flow)) == picture(flow)


def test_nothing_is_framed_in_a_plan_that_is_not_fused():
    unfused = plan(plant(), fuse=False)
    assert "subgraph" not in mermaid(unfused)
    assert "cw-segment" not in svg(unfused)
    assert len(diagram_of(unfused).groups) == len(unfused.flow.steps)


def test_exchanges_say_by_what():
    flow = cw.Flow("exchanges")
    source = flow.source("readings", Reading, time="at")
    source.key_by("sensor", "at").batch(name="a").sink("a")
    source.key_by(str.lower, name="zone").batch(name="b").sink("b")
    source.key_by(lambda reading: reading.at).batch(name="c").sink("c")
    source.batch(name="d").sink("d")
    source.key_by("at").sink("not exchanged, for it keeps no state")
    labels = [group.exchange for group in diagram_of(flow).exchanges]
    assert labels == ["by sensor, at", "by zone", "by function", "all in one place"]


def test_types_are_written_without_their_modules():
    flow = cw.Flow("types")
    flow.source("all", Reading | Reset | None).batch().sink("batches")
    assert [node.carries for node in diagram_of(flow).nodes] == [
        "Reading | Reset | None",
        *["tuple[tuple[Any, Reading | Reset | None], ...]"] * 2,
    ]


HOSTILE = [
    '"quoted"',
    "a]b[c (d) {e}",
    "<script>alert(1)</script>",
    "&lt; &amp; ]]> #quot; #35;",
    "two\nlines\tand\r\nmore",
    "\x00\x1b[31m\ufffe\ud800",
    "turned \u202eround\u2066",
    "end",
    "- item",
    "1. item",
    "`code` **bold** __init__ ~~gone~~ _a_",
    "[a](https://example.org) www.example.org a@example.org",
    "%%{init: {}}%%",
    "classDef x:#fff;",
    "a --> b",
    "$$x^2$$ fa:fa-car \\n",
    "ﬂ°°60¶ß",
    "温度 🚀 مرحبا ∭ ﷽ e\u0301",
    "m" * 300,
]


def drawn_with(name: str) -> cw.Flow:
    flow = cw.Flow(name)
    flow.source(name, str).map(len, name=name).key_by(len, name=f"{name} key").batch().sink(name)
    return flow


@pytest.mark.usefixtures("any_name")
@pytest.mark.parametrize("name", HOSTILE)
def test_svg_of_hostile_names(name):
    root = ElementTree.fromstring(svg(drawn_with(name)).encode())
    titles = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles[0] == clean(name)
    assert f"source {clean(name)} (str)" in titles
    assert {element.tag.partition("}")[2] for element in root.iter()} <= {
        *("svg", "title", "desc", "style", "g", "rect", "path", "text"),
    }


LINE = re.compile(
    r"flowchart LR|  end|  classDef \w+ [\w:#,-]+"
    r'|  subgraph g\d+\["[^"]*"\]'
    r'|  (  )?s\d+(\["[^"]*"\]|\(\["[^"]*"\]\)|\[\("[^"]*"\)\]|\[\["[^"]*"\]\])(:::\w+)?'
    r'|  s\d+ (-->|== "[^"]*" ==>) s\d+'
)


def shown(text: str) -> str:
    """What Mermaid shows for an escaped text: no entities, nothing without width."""
    plain = re.sub(r"#(\d+);", lambda match: chr(int(match[1])), text)
    return plain.replace("\u2060", "").translate(str.maketrans("∗ˋ∼", "*`~"))


@pytest.mark.usefixtures("any_name")
@pytest.mark.parametrize("name", HOSTILE)
def test_mermaid_of_hostile_names(name):
    text = mermaid(drawn_with(name))
    assert [line for line in text.splitlines() if not LINE.fullmatch(line)] == []
    label = re.search(r's0\(\["(.*)<br/>source · str"\]\)', text)
    assert label
    assert shown(label[1]) == clean(name)
    signs = re.sub(r"#\d+;", "", label[1])
    assert not set(signs) & set('"#<>&;:`*~@$%{}()[]|\\°¶')


@pytest.mark.parametrize("name", ["1. item", "- item", "# heading", "> quote", "---"])
def test_no_label_begins_like_a_list_or_a_heading(name):
    assert 's0(["#8288;' in mermaid(drawn_with(name))


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), LEGIBLE)
def test_text_stands_out_from_its_ground(text, ground, scheme):
    one, other = (luminance(COLOURS[role][scheme]) for role in (text, ground))
    contrast = (max(one, other) + 0.05) / (min(one, other) + 0.05)
    assert contrast >= 4.5  # what WCAG asks of small text


@pytest.mark.parametrize("font", [NAME, SMALL])
@pytest.mark.parametrize("room", [40.0, 100.0, 250.0])
def test_what_is_cut_short_fits(font, room):
    for text in HOSTILE:
        cut = font.fit(clean(text), room)
        assert font.width(cut) <= room
        assert cut == clean(text) or cut.endswith("…")


def test_the_picture_needs_nothing_from_elsewhere():
    for address in re.findall(r"\w+://[^\"' ]+|url\([^)]*\)|@import|href", svg(plant())):
        assert address == "http://www.w3.org/2000/svg"


def test_a_loop_says_how_it_turns_and_where():
    flow = cw.Flow("loops")
    words = flow.source("words", str)
    stays = words.key_by(len).iterate(lambda s: s.filter(bool), name="stays")
    leaves = words.iterate(lambda s: s.key_by(len, name="anew").filter(bool, name="some"))
    flow.sink("a", stays)
    flow.sink("b", leaves)
    flow.sink("c", words.iterate(lambda s: s.key_by(len, name="own").filter(bool), plan="epoch"))
    diagram = diagram_of(flow)
    verbs = {node.name: node.verb for node in diagram.nodes}
    assert verbs["stays"] == "iterate, all iterations in one epoch"
    assert verbs["iterate"] == "iterate, one iteration per epoch, input epochs at once"
    assert verbs["iterate_2"] == (
        "iterate, all iterations in one epoch, in one bucket: plan='epoch'"
    )
    exchanges = {diagram.nodes[group.nodes[-1]].name: group.exchange for group in diagram.exchanges}
    assert exchanges == {
        "stays": "by len",
        "iterate": "by the keys in its body",
        "iterate_2": "all in one place",
    }
