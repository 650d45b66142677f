"""The lines of a loop's log: to which input epochs they belong."""

from hypothesis import given
from hypothesis import strategies as st
from support.fuzz.mutations import mutations, tolerate

from cutwater import Flow
from cutwater.errors import RefusedError
from cutwater.flow.steps import FromLog
from cutwater.flow.timely.cutting import cut
from cutwater.ordering import NO_KEY
from cutwater.spark.exchange.batch import EventBatch
from cutwater.spark.exchange.log_lines import (
    LogLines,
    inputs_in,
    lines_by_input,
    orders_in,
    with_input_epoch,
)

FILES = st.dictionaries(
    st.integers(0, 10**12),
    st.lists(st.text("ab ", max_size=40).map(str.encode), min_size=1, max_size=9),
    max_size=6,
)


@given(FILES)
def test_inputs_in_are_the_numbers_that_lines_by_input_has(tmp_path_factory, by_input):
    """inputs_in(file) == [number for number, _ in lines_by_input(file)]"""
    path = tmp_path_factory.mktemp("log") / "part-0"
    ordered = sorted(by_input.items())
    path.write_bytes(
        b"".join(with_input_epoch(line + b"\n", n) for n, lines in ordered for line in lines)
    )
    assert list(lines_by_input(str(path))) == ordered
    assert inputs_in(str(path)) == [number for number, _ in ordered]


def test_a_damaged_log_of_a_loop_is_a_sentence(tmp_path):
    """Whatever its lines are: numbers, orders, values."""
    flow = Flow("loop")
    items = flow.source("items", int)
    body = lambda numbers: numbers.key_by(parity).flat_map(shorter)  # noqa: E731
    flow.sink("out", items.iterate(body, name="walk", max_rounds=9))
    log = next(step for step in cut(flow.steps) if isinstance(step, FromLog))
    lines = LogLines(log, is_timed=False)
    written = lines.written(EventBatch([b"a", b"b"], [NO_KEY] * 2, [7, 8], label=0))
    path = tmp_path / "part-0"
    path.write_bytes(b"".join(with_input_epoch(line, n) for n in (3, 4) for line in written))

    def look():
        inputs_in(str(path))
        for _, found in lines_by_input(str(path)):
            orders_in(str(path), found)
            lines.read(str(path), found, 0)

    look()
    for mutated in mutations(path.read_bytes(), seed=6):
        path.write_bytes(mutated)
        tolerate(mutated, look, RefusedError)


def parity(number: int) -> int:
    return number % 2


def shorter(number: int) -> list[int]:
    return [number - 1] if number else []
