"""What holds for the picture of every flow: nothing overlaps, and edges keep clear of boxes."""

import re
from collections.abc import Iterator
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cutwater as cw
from cutwater.flow import plan
from cutwater.flow.drawing import mermaid, svg
from cutwater.flow.drawing.diagram import diagram_of
from cutwater.flow.drawing.layout import laid_out
from cutwater.flow.drawing.routing import Box
from cutwater.flow.drawing.text_width import clean

pytestmark = pytest.mark.usefixtures("any_name")

SVG = "{http://www.w3.org/2000/svg}"


@cw.task(initial=0)
def count(state, event):
    return state + 1, [state + 1]


def same(value):
    return value


def add_step(kind: str, name: str, one: cw.Stream, other: cw.Stream) -> cw.Stream:
    match kind:
        case "map":
            return one.map(same, name=name)
        case "filter":
            return one.filter(bool, name=name)
        case "key_by":
            return one.key_by(same, name=name)
        case "apply":
            return one.apply(count, name=name)
        case "batch":
            return one.batch(name=name)
        case "merge":
            return one.merge(other, name=name)
        case "union":
            return one.map(same).union(other.map(same), name=name)
    left = one.key_by(same, name=f"{name} left")
    right = other.key_by(same, name=f"{name} right")
    return left.join(right, max, name=name)


KINDS = ["map", "filter", "key_by", "apply", "batch", "merge", "union", "join"]


@st.composite
def flows(draw: st.DrawFn, most: int = 14) -> cw.Flow:
    """A valid flow of any shape, with any names; what nothing reads gets a sink."""
    words = st.text(max_size=12)
    flow = cw.Flow(draw(words) or "flow")
    streams = [flow.source(f"{draw(words)} {i}", float) for i in range(draw(st.integers(1, 3)))]
    for i in range(draw(st.integers(0, most))):
        kind = draw(st.sampled_from(KINDS))
        one, other = draw(st.sampled_from(streams)), draw(st.sampled_from(streams))
        streams.append(add_step(kind, f"{i} {draw(words)}", one, other))
    read = {number for step in flow.steps for number in step.inputs}
    unread = [n for n in range(len(flow.steps)) if n not in read]
    for number in unread or [0]:
        flow.sink(f"{draw(words)} {number}", cw.Stream(flow, number))
    return flow


def overlap(one: Box, other: Box) -> bool:
    beside = one.right <= other.x or other.right <= one.x
    return not (beside or one.y + one.height <= other.y or other.y + other.height <= one.y)


def holds(box: Box, x: float, y: float) -> bool:
    return box.x < x < box.right and box.y < y < box.y + box.height


def points(path: str) -> Iterator[tuple[float, float]]:
    """Points on a line made of M, H and C, near enough to each other."""
    x = y = 0.0
    for command, text in re.findall(r"([MHC])([^MHC]*)", path):
        numbers = [float(number) for number in text.split()]
        if command == "M":
            x, y = numbers
            yield x, y
        elif command == "H":
            yield from ((x + (numbers[0] - x) * i / 40, y) for i in range(1, 41))
            x = numbers[0]
        else:
            ends = [(x, y), *zip(numbers[::2], numbers[1::2], strict=True)]
            yield from (bezier(ends, i / 40) for i in range(1, 41))
            x, y = ends[-1]


def bezier(ends: list[tuple[float, float]], t: float) -> tuple[float, float]:
    weights = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3]
    return tuple(sum(w * end[i] for w, end in zip(weights, ends, strict=True)) for i in (0, 1))


@given(flows())
def test_nothing_overlaps(flow):
    diagram = diagram_of(flow)
    layout = laid_out(diagram)
    for one, other in combinations(layout.boxes, 2):
        assert not overlap(one, other)
    badges = [badge.box for badge in layout.badges]
    for frame in layout.frames:
        inside = {layout.boxes[n] for n in frame.group.nodes}
        others = [other.box for other in layout.frames if other is not frame]
        for box in [*others, *badges, *(set(layout.boxes) - inside)]:
            assert not overlap(frame.box, box)
        for box in inside:
            assert frame.box.x < box.x
            assert box.right < frame.box.right
    for one, other in combinations([*badges, *layout.boxes], 2):
        assert not overlap(one, other)
    for box in [*layout.boxes, *badges, *(frame.box for frame in layout.frames)]:
        assert 0 <= box.x <= box.right <= layout.width
        assert 0 <= box.y <= box.y + box.height <= layout.height


@given(flows())
def test_edges_go_to_the_right_and_pass_through_nothing(flow):
    layout = laid_out(diagram_of(flow))
    entrances = {badge.group.nodes[0]: badge.box for badge in layout.badges}
    root = ElementTree.fromstring(svg(flow))
    links = [group for group in root.iter(f"{SVG}g") if group.get("class") == "cw-link"]
    ends = [(int(link.get("data-from")), int(link.get("data-to"))) for link in links]
    assert sorted(ends) == sorted((i, n) for n, s in enumerate(flow.steps) for i in s.inputs)
    for link, (source, target) in zip(links, ends, strict=True):
        way = list(points(link.find(f"{SVG}path").get("d")))
        assert all(here[0] <= there[0] for here, there in pairwise(way))
        assert way[0] == (layout.boxes[source].right, layout.boxes[source].middle)
        end = entrances.get(target, layout.boxes[target])
        assert end.x - 10 <= way[-1][0] <= end.x
        assert end.y < way[-1][1] < end.y + end.height
        frames = [f.box for f in layout.frames if not {source, target} & set(f.group.nodes)]
        for box in [*layout.boxes, *entrances.values(), *frames]:
            assert not any(holds(box, x, y) for x, y in way)


@given(flows(), st.booleans())
def test_every_step_is_drawn_once(flow, fuse):
    planned = plan(flow, fuse=fuse)
    root = ElementTree.fromstring(svg(planned))
    nodes = [group for group in root.iter(f"{SVG}g") if group.get("class") == "cw-node"]
    assert [int(node.get("data-step")) for node in nodes] == list(range(len(flow.steps)))
    for node, step in zip(nodes, flow.steps, strict=True):
        assert node.find(f"{SVG}title").text.startswith(clean(f"{step.verb} {step.name}"))
    drawn = re.findall(r"^ +s(\d+)[\[(]", mermaid(planned), re.MULTILINE)
    assert sorted(map(int, drawn)) == list(range(len(flow.steps)))


@given(flows(most=6))
def test_a_picture_is_the_same_each_time(flow):
    copy = cw.Flow(flow.name, flow.steps)
    assert svg(flow) == svg(copy)
    assert mermaid(flow) == mermaid(copy)
