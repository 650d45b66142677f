import pickle
from copy import deepcopy

from hypothesis import given
from hypothesis import strategies as st

from cutwater.operators.log import Log


@given(st.lists(st.integers()), st.lists(st.integers()))
def test_a_log_is_its_items(first, more):
    log = Log(first)
    for item in more:
        log = log.append(item)
    assert list(log) == [*first, *more]
    assert len(log) == len(first) + len(more)
    assert log == Log([*first, *more])
    assert hash(log) == hash(Log([*first, *more]))


@given(st.lists(st.tuples(st.integers(0, 20), st.integers())))
def test_no_view_ever_changes(appends):
    """Each append goes to a log made earlier, so that logs share items and branch."""
    logs = [(Log[int](), ())]
    for which, item in appends:
        log, items = logs[which % len(logs)]
        logs.append((log.append(item), (*items, item)))
    assert all(tuple(log) == items for log, items in logs)


def test_a_log_does_not_follow_the_list_it_was_made_from():
    items = [1]
    log = Log(items)
    items.append(2)
    assert list(log) == [1]


def test_a_log_is_no_list():
    assert Log([1]) != [1]
    assert not Log()
    assert Log([0])
    assert repr(Log("ab")) == "Log(['a', 'b'])"


def test_a_log_can_be_copied_and_pickled():
    short = Log([1])
    short.append(2)
    assert list(deepcopy(short)) == list(pickle.loads(pickle.dumps(short))) == [1]


def test_appending_is_cheap():
    """A hundred thousand appends by copying would take minutes."""
    log = Log[int]()
    for n in range(100_000):
        log = log.append(n)
    assert len(log) == 100_000
