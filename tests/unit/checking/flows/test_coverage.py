"""What no input of a check reached is named, with inputs that would."""

from dataclasses import dataclass

import cutwater as cw


@dataclass(frozen=True)
class Click:
    user: str
    at: int
    size: int


def clicks(flow, name="clicks", watermark=True):
    rule = cw.bounded_delay(0) if watermark else None
    return flow.source(name, Click, time="at", watermark=rule)


def is_large(click: Click) -> bool:
    return click.size >= 3


def pair(left: Click, right: Click) -> int:
    return left.size + right.size


def notes(flow, inputs=None):
    """What a check says it never looked at."""
    report = cw.check(flow, inputs, crashes=1, max_states=500, walks=2)
    found = [f for f in report.findings if f.check == "never exercised by these inputs"]
    return [line for finding in found for line in finding.details]


def joined(watermark=True):
    flow = cw.Flow("joined")
    left, right = clicks(flow, "left", watermark), clicks(flow, "right", watermark)
    by_user = [stream.key_by("user", name=f"by_{n}") for n, stream in enumerate([left, right])]
    flow.sink("pairs", by_user[0].join(by_user[1], pair))
    return flow


def windowed():
    flow = cw.Flow("windowed")
    windows = clicks(flow).window(cw.tumbling(2)).aggregate(n=cw.agg.count())
    flow.sink("counts", windows)
    return flow


def test_a_join_that_never_paired_is_named_with_inputs_that_do():
    inputs = {"left": [Click("a", 1, 0)], "right": [Click("b", 1, 0)]}
    message, found = notes(joined(), inputs)
    assert message == "join 'join' never paired two values"
    assert found.startswith("inputs that do: left: Click(user=")
    assert "; right: Click(user=" in found


def test_a_join_over_clocks_that_never_paired_is_named_too():
    flow = cw.Flow("joined")
    sides = [clicks(flow, name).key_by("user", name=f"by_{name}") for name in ("left", "right")]
    flow.sink("pairs", sides[0].join_clocks(sides[1], pair, unbounded=True))
    inputs = {"left": [Click("a", 1, 0)], "right": [Click("b", 1, 0)]}
    message, found = notes(flow, inputs)
    assert message == "join_clocks 'join_clocks' never paired two values"
    assert found.startswith("inputs that do: left: Click(user=")
    assert notes(flow, {**inputs, "right": [Click("a", 5, 0)]}) == []


def test_runs_that_only_the_end_ended_and_values_that_were_all_skipped_are_named():
    flow = cw.Flow("few")
    stream = clicks(flow)
    flow.sink("sizes", stream.bulk(lambda run: [len(run)], 2, name="pairs"))
    flow.sink("rest", stream.skip(2, name="some"))
    few = [Click("a", 1, 0)]
    unclosed, _ = notes(flow, {"clicks": [cw.Data(1, few[0])]})[:2]
    assert unclosed == "bulk 'pairs' emitted nothing before the end of the input"
    assert "skip 'some' emitted nothing" in notes(flow, {"clicks": few})
    assert notes(flow, {"clicks": few * 3}) == []


def test_a_join_that_paired_is_not():
    inputs = {"left": [Click("a", 1, 0)], "right": [Click("a", 1, 0)]}
    assert notes(joined(), inputs) == []


def test_a_window_that_never_closed_is_named_with_inputs_that_close_one():
    message, found = notes(windowed(), {"clicks": [Click("a", 0, 0)]})
    assert message == "no window of 'window' closed before the end of the input"
    assert found.count("Click(") == 2


def test_a_frontier_that_cannot_move_is_reported_with_the_source_that_holds_it():
    flow = cw.Flow("held")
    flow.sink("batches", clicks(flow, watermark=False).batch())
    assert notes(flow, {"clicks": [Click("a", 0, 0)]}) == [
        "batch 'batch' completed nothing before the end of the input: its frontier cannot move, "
        "since 'clicks' has no watermarks",
    ]


def test_a_frontier_that_a_source_without_events_holds_is_said():
    """On Spark, too, no time is complete where a source has had no record."""
    flow = cw.Flow("held")
    flow.sink("batches", clicks(flow, "x").merge(clicks(flow, "y")).batch())
    given = {"x": [Click("a", 0, 0), cw.BARRIER, Click("a", 9, 0)], "y": []}
    assert (
        "batch 'batch' completed nothing before the end of the input: its frontier cannot move, "
        "since 'y' has no events"
    ) in notes(flow, given)


def test_every_source_that_holds_a_frontier_is_named_with_its_reason():
    flow = cw.Flow("held")
    merged = clicks(flow, "a", watermark=False).merge(
        clicks(flow, "b", watermark=False), clicks(flow, "c"), clicks(flow, "d")
    )
    flow.sink("batches", merged.batch())
    given = {"a": [Click("a", 0, 0)], "b": [], "c": [Click("a", 0, 0)], "d": []}
    assert notes(flow, given)[-1].endswith(
        "its frontier cannot move, since 'a', 'b' have no watermarks and 'd' has no events"
    )


def test_a_frontier_that_watermarks_among_the_inputs_move_is_not():
    flow = cw.Flow("moved")
    flow.sink("batches", clicks(flow, watermark=False).batch())
    assert notes(flow, {"clicks": [Click("a", 0, 0), cw.Watermark(0)]}) == []


def test_a_filter_that_lets_nothing_through_is_named_and_not_what_is_behind_it():
    flow = cw.Flow("filtered")
    sizes = clicks(flow).filter(is_large).map(lambda click: click.size)
    flow.sink("sizes", sizes)
    message, found = notes(flow, {"clicks": [Click("a", 0, 1), Click("a", 1, 2)]})
    assert message == "filter 'is_large' let nothing through"
    assert "size=3" in found


def test_a_source_without_events_is_named():
    flow = cw.Flow("merged")
    flow.sink("both", clicks(flow, "x").merge(clicks(flow, "y")).map(lambda click: click.size))
    message, _ = notes(flow, {"x": [Click("a", 0, 0)], "y": []})
    assert message == "source 'y' has no event in these inputs"


def test_nothing_to_swap_is_not_called_independence_of_order():
    flow = cw.Flow("one")
    flow.sink("sizes", clicks(flow).map(lambda click: click.size))
    report = cw.check(flow, {"clicks": [Click("a", 0, 0)]})
    (found,) = (f for f in report.findings if "order" in f.check)
    assert (found.check, found.verdict) == ("order of inputs: nothing was checked", "note")


def test_the_same_seed_finds_the_same_inputs():
    inputs = {"left": [Click("a", 1, 0)], "right": [Click("b", 1, 0)]}
    assert notes(joined(), inputs) == notes(joined(), inputs)


def test_a_frontier_that_moves_and_completes_nothing_is_not_reported_to_be_held():
    flow = cw.Flow("too early")
    flow.sink("batches", clicks(flow, watermark=False).batch())
    assert notes(flow, {"clicks": [Click("a", 5, 0), cw.Watermark(0)]}) == [
        "batch 'batch' completed nothing before the end of the input"
    ]


def echo(seen: int, time: int, click: Click) -> tuple[int, list[int | cw.Notify]]:
    return seen + 1, [seen, cw.Notify(time + 5)]


def told(seen: int, time: int) -> tuple[int, list[int | cw.Notify]]:
    return seen, [time]


def test_what_a_step_emits_at_once_is_no_notification():
    flow = cw.Flow("echo")
    flow.sink("out", clicks(flow).on_complete(echo, told, initial=0))
    message = notes(flow, {"clicks": [Click("a", 0, 0)]})[0]
    assert message == "on_complete 'told' completed nothing before the end of the input"


def is_huge(click: Click) -> bool:
    return click.size > 99


def waited(seen: int, time: cw.Product, click: Click) -> tuple[int, list[Click | cw.Notify]]:
    return seen + 1, [cw.Notify(time)]


def completed(seen: int, time: cw.Product) -> tuple[int, list[Click | cw.Notify]]:
    return seen, [Click("told", time.first, seen)]


def waiting(stream):
    return stream.on_complete(waited, completed, initial=0, name="waits")


def in_loops(step, watermark=True):
    """A step in a loop that is in another loop."""
    flow = cw.Flow("loops")

    def inner(stream):
        done = step(stream)
        return done.filter(is_huge, name="again"), done

    def outer(stream):
        left = stream.iterate(inner, name="inner")
        return left.filter(is_huge, name="outer again"), left

    flow.sink("out", clicks(flow, watermark=watermark).iterate(outer, name="outer"))
    return flow


def test_a_filter_in_a_loop_that_lets_nothing_through_is_named():
    flow = in_loops(lambda stream: stream.filter(is_large).map(lambda click: click, name="behind"))
    message, found, *_ = notes(flow, {"clicks": [Click("a", 0, 1), cw.BARRIER, Click("a", 1, 2)]})
    assert message == "filter 'is_large' let nothing through"
    assert "size=3" in found


def test_all_that_a_loop_does_is_no_gap():
    flow = in_loops(waiting)
    assert notes(flow, {"clicks": [Click("a", 0, 1), cw.BARRIER, Click("a", 9, 1)]}) == [
        "filter 'again' let nothing through",
        "filter 'outer again' let nothing through",
    ]


def test_a_frontier_in_a_loop_that_cannot_move_is_reported_with_the_source_that_holds_it():
    messages = notes(in_loops(waiting, watermark=False), {"clicks": [Click("a", 0, 1)]})
    assert messages[0] == (
        "on_complete 'waits' completed nothing before the end of the input: its frontier cannot "
        "move, since 'clicks' has no watermarks"
    )


@cw.task(initial=0)
def rarely(seen: int, click: Click) -> tuple[int, list[int]]:
    return seen + 1, [seen] if click.size > 1 else []


def large_sizes(click: Click) -> list[int]:
    return [click.size] if click.size > 1 else []


def test_a_flat_map_that_emits_nothing_into_a_sink_is_named_with_inputs_that_make_it():
    flow = cw.Flow("sizes")
    flow.sink("sizes", clicks(flow).flat_map(large_sizes))
    message, found = notes(flow, {"clicks": [Click("a", 0, 0)]})
    assert message == "flat_map 'large_sizes' emitted nothing"
    assert found.startswith("inputs that do: clicks: Click(")
    assert notes(flow, {"clicks": [Click("a", 0, 2)]}) == []


def test_a_task_that_never_emitted_is_named_and_what_follows_is_not():
    flow = cw.Flow("rare")
    flow.sink("seen", clicks(flow).key_by("user").apply(rarely).map(abs))
    message, *_ = notes(flow, {"clicks": [Click("a", 0, 0)]})
    assert message == "apply 'rarely' emitted nothing"
    assert not any("abs" in line for line in notes(flow, {"clicks": [Click("a", 0, 0)]}))
    assert notes(flow, {"clicks": [Click("a", 0, 2)]}) == []


def expiring(watermark=True):
    flow = cw.Flow("expiring")
    keyed = clicks(flow, watermark=watermark).key_by("user")
    flow.sink("seen", keyed.apply(rarely, expire_after=5))
    return flow


def test_a_state_that_never_expires_is_named_with_inputs_that_let_it():
    message, *_ = notes(expiring(), {"clicks": [Click("a", 0, 2)]})
    assert message == "no state of apply 'rarely' expired"
    late = [Click("a", 0, 2), Click("b", 9, 2), cw.BARRIER, Click("b", 10, 2)]
    assert notes(expiring(), {"clicks": late}) == []


def test_a_state_that_cannot_expire_is_reported_with_the_source_that_holds_the_frontier():
    message, *_ = notes(expiring(watermark=False), {"clicks": [Click("a", 0, 2)]})
    assert message.endswith("its frontier cannot move, since 'clicks' has no watermarks")


def test_what_holds_of_no_event_is_not_reported_to_hold():
    flow = cw.Flow("sizes")
    flow.sink("sizes", clicks(flow).flat_map(large_sizes))
    report = cw.check(flow, {"clicks": []}, crashes=1, max_states=500, walks=2)
    passed = {f.check for f in report.findings if f.verdict in ("holds", "not refuted")}
    assert passed == {"functions can be sent to an engine"}
    notes_on = [f.check for f in report.findings if f.verdict == "note"]
    assert "failure transparency, all runs: nothing was checked" in notes_on
    assert report.holds
