"""The lines of a loop's log: to which input epochs they belong."""

from hypothesis import given
from hypothesis import strategies as st

from cutwater.spark.exchange.log_lines import inputs_in, lines_by_input, with_input_epoch

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
