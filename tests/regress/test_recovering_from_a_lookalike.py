"""Text that only looked like an embedded error made `extract` raise, and hid the real one."""

from cutwater.errors import InputError, Problem, embed, extract


def test_recovering_from_a_lookalike():
    assert extract("log: <<cutwater:oops:cutwater>>") is None
    text = f"<<cutwater: is how it starts {embed(InputError(Problem('a', 'one')))}"
    assert extract(text).problems == (Problem("a", "one"),)
