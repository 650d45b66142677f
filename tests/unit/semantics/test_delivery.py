"""The four steps of P2's Definition 1, and what they refuse."""

import pytest

from cutwater.checking import check_model
from cutwater.errors import InputError
from cutwater.semantics.delivery.epochs import drifting_state, flink_epochs
from cutwater.semantics.delivery.histories import letters
from cutwater.semantics.delivery.model import DeliveryModel, Input, Lose, Output, Quiesce, Repeat
from cutwater.semantics.delivery.published import (
    all_idempotent,
    micro_batches,
    released_at_once,
    strong_productions,
)
from cutwater.semantics.delivery.system import (
    EMPTY,
    Configuration,
    Element,
    bag,
    fail_and_recover,
    reference_recovery,
    release,
    take_input,
    transform,
)

A, B = letters("ab")
STATE, OUT = Element("state", "a"), Element("out", "a")


def test_an_input_is_kept_by_its_producer_and_enters_the_working_set():
    c = take_input(take_input(Configuration(), A), A)
    assert c == Configuration(bag(A, A), EMPTY, bag(A, A))


def test_an_output_leaves_the_working_set():
    c = Configuration(bag(A), bag(OUT), bag(OUT, STATE))
    assert release(c, OUT) == Configuration(bag(A), bag(OUT, OUT), bag(STATE))


def test_what_is_not_in_the_working_set_cannot_leave():
    assert release(Configuration(bag(A), bag(OUT), bag(STATE)), OUT) is None


def test_a_transform_replaces_what_it_takes():
    c = Configuration(bag(A), EMPTY, bag(A, A))
    after = transform(c, (bag(A), bag(STATE, OUT)))
    assert after == Configuration(bag(A), EMPTY, bag(A, STATE, OUT))


def test_what_a_transform_reads_from_the_outputs_stays_there():
    snapshot = Element("snapshot", "a")
    c = Configuration(bag(A), bag(snapshot), EMPTY)
    assert transform(c, (bag(snapshot), bag(STATE))) == Configuration(
        bag(A), bag(snapshot), bag(STATE)
    )


def test_a_transform_takes_only_what_is_there():
    c = Configuration(bag(A), bag(OUT), bag(A))
    assert transform(c, (bag(A, A), EMPTY)) is None
    assert transform(c, (bag(A, OUT), EMPTY)) is not None


def test_a_failure_loses_all_that_is_not_restored():
    c = Configuration(bag(A, B), bag(OUT), bag(STATE, B))
    assert fail_and_recover(c, bag(A), lambda a, b: (bag(A),)) == Configuration(
        bag(A, B), bag(OUT), bag(A)
    )
    assert fail_and_recover(c, bag(B), lambda a, b: (bag(A),)) is None


def test_the_reference_recovery_restores_what_there_was():
    c = Configuration(bag(A, B), bag(OUT), bag(STATE, B))
    assert fail_and_recover(c, c.working, reference_recovery(c)) == c


def test_a_step_that_is_not_possible_is_refused():
    model = DeliveryModel(flink_epochs(), [A])
    (start,) = model.initial_states()
    with pytest.raises(ValueError, match="out a leaves is not possible here"):
        model.step(start, Output(OUT))


def test_a_channel_that_loses_or_repeats_says_so():
    model = DeliveryModel(all_idempotent(), [A], failures=1)
    (start,) = model.initial_states()
    assert model.actions(start)[0] == Input(A)
    assert Lose(A) in model.reference("loses").actions(start)
    assert Lose(A) not in model.reference("repeats").actions(start)

    repeats = model.reference("repeats")
    entered = repeats.step(start, Input(A))
    assert Repeat(A) not in repeats.actions(entered)  # nothing has failed
    failed = repeats.step(entered, repeats.actions(entered)[-1])
    twice = repeats.step(failed, Repeat(A))
    assert twice.configuration.inputs == bag(A, A)
    assert Repeat(A) not in repeats.actions(twice)  # once more for each failure


def test_a_run_rests_where_nothing_but_a_failure_is_possible():
    model = DeliveryModel(all_idempotent(), [A], failures=0)
    (here,) = model.initial_states()
    steps = []
    while possible := model.actions(here):
        assert (possible == [Quiesce()]) or Quiesce() not in possible
        steps.append(str(possible[0]))
        here = model.step(here, possible[0])
    assert here.is_quiescent
    assert steps == [
        "in a enters",
        "{in a} becomes {out a}",
        "out a leaves",
        "nothing is left to do",
    ]


@pytest.mark.parametrize(
    "make",
    [
        all_idempotent,
        drifting_state,
        flink_epochs,
        micro_batches,
        released_at_once,
        strong_productions,
    ],
)
def test_a_recovery_that_a_system_does_not_have_is_refused(make):
    with pytest.raises(InputError, match=r"unknown-recovery.*'hope'"):
        make("hope")
    assert check_model(DeliveryModel(make(), [A])).is_exhaustive
