"""Text that only looked like an embedded error made `recover` raise, and hid the real one."""

from cutwater.errors import InputError, Problem, embed, recover


def test_recovering_from_a_lookalike():
    assert recover("log: <<cutwater:oops:cutwater>>") is None
    text = f"<<cutwater: is how it starts {embed(InputError(Problem('a', 'one')))}"
    assert recover(text).problems == (Problem("a", "one"),)
