"""Behind the merge the stream has no key, but each old key still had a state of its own."""

import cutwater as cw


@cw.task(initial=0)
def count(seen: int, _value: int) -> tuple[int, list[int]]:
    return seen + 1, [seen + 1]


def test_a_keyed_stream_that_meets_an_unkeyed_one():
    flow = cw.Flow("meeting")
    a = flow.source("a", int)
    flow.sink("out", a.key_by(lambda n: n % 2).merge(a).apply(count))
    assert cw.simulate(flow, {"a": [1, 2]})["out"] == [1, 2, 3, 4]
