"""The lemmas of P1, appendix B, on random runs with crashes and recoveries."""

import random
from itertools import pairwise

from hypothesis import given
from support.checking.random_systems import drawn_run, keep, replayed, seeds

from cutwater.checking.transparency.causality import causes, happens_before, is_causal, reordered
from cutwater.semantics.barrier_model import Fail, Recover, TakeBarrier, TakeEvent
from cutwater.semantics.barriers import (
    EventContent,
    Message,
    Task,
    greatest_common_epoch,
    initial_configuration,
    latest_common_snapshot,
    output,
)
from cutwater.semantics.recording import record
from cutwater.semantics.wellformed import graph_of, ill_formed


def recorded(run):
    return record(run.initial, run.moves).steps


def is_committing(before, after):
    return greatest_common_epoch(before) != greatest_common_epoch(after)


def steps_of(run):
    return list(zip(run.moves, *zip(*pairwise(run.configurations), strict=True), strict=True))


def split(run):
    """The run between recoveries: pairs of its moves' indices and its starting configuration."""
    parts, start = [], 0
    for index, move in enumerate(run.moves):
        if isinstance(move, Recover):
            parts.append((range(start, index), run.configurations[start]))
            start = index + 1
    return [*parts, (range(start, len(run.moves)), run.configurations[start])]


def test_random_runs_do_all_that_a_run_can_do():
    """The laws below are of something: runs commit several epochs, crash and recover."""
    runs = [drawn_run(seed) for seed in range(200)]
    seen = {type(move) for run in runs for move in run.moves}
    assert seen == {TakeEvent, TakeBarrier, Fail, Recover}
    recoveries = [sum(isinstance(move, Recover) for move in run.moves) for run in runs]
    assert sum(count >= 2 for count in recoveries) > 40
    assert sum(greatest_common_epoch(run.last) >= 2 for run in runs) > 60
    is_down = [sum(isinstance(m, Fail) for m in run.moves) > r
               for run, r in zip(runs, recoveries, strict=True)]  # fmt: skip
    assert sum(is_down) > 20  # two tasks are down at once, or the run ends so
    assert sum(len(run.initial.graph.tasks) >= 4 for run in runs) > 40
    multiple = [t for run in runs for t in run.initial.graph.tasks if len(t.inputs) > 1]
    assert len(multiple) > 100


@given(seeds)
def test_lemma_b2_every_prefix_of_a_run_is_a_run(seed):
    run = drawn_run(seed, longest=40)
    for length in range(0, len(run.moves) + 1, 5):
        assert replayed(run.initial, run.moves[:length]) == list(run.configurations[: length + 1])


@given(seeds)
def test_lemma_6_5_a_permutation_that_preserves_causality_is_a_run_to_the_same_end(seed):
    run = drawn_run(seed)
    steps = recorded(run)
    for again in range(3):
        order = reordered(steps, random.Random(seed + again))
        assert is_causal(steps, order)
        found = replayed(run.initial, [run.moves[i] for i in order])
        assert found is not None
        assert found[-1] == run.last


@given(seeds)
def test_lemma_6_5_neighbours_that_are_not_causally_related_can_be_swapped(seed):
    """The relation is not too strong: what it leaves open is open."""
    run = drawn_run(seed, longest=50)
    steps = recorded(run)
    direct = causes(steps)
    for i in range(len(steps) - 1):
        if i in direct[i + 1]:
            continue
        order = [*range(i), i + 1, i, *range(i + 2, len(steps))]
        assert is_causal(steps, order)
        found = replayed(run.initial, [run.moves[j] for j in order[: i + 2]])
        assert found is not None
        assert found[-1] == run.configurations[i + 2]


@given(seeds)
def test_neighbours_that_are_causally_related_cannot_in_general_be_swapped(seed):
    """The relation is not too weak: each kind of cause is one.

    A recovery and what comes after it always are in their order, and so are a message and who
    takes it. Two events that a task takes from two inputs could be swapped, but not to the same
    end: this is an order too.
    """
    run = drawn_run(seed, longest=50)
    steps = recorded(run)
    direct = causes(steps)
    for i in range(len(steps) - 1):
        if i not in direct[i + 1]:
            continue
        order = [*range(i), i + 1, i, *range(i + 2, len(steps))]
        assert not is_causal(steps, order)
        found = replayed(run.initial, [run.moves[j] for j in order[: i + 2]])
        is_same = found is not None and found[-1] == run.configurations[i + 2]
        match run.moves[i], run.moves[i + 1]:
            case Recover(), TakeEvent() | TakeBarrier():
                assert not is_same  # what comes before the recovery is undone
            case TakeEvent(message=one), TakeEvent(message=other):
                assert not is_same or one.content == other.content
            case TakeBarrier(task=one), TakeBarrier(task=other) if one == other:
                pass  # the barriers of two epochs in a row: as moves they look alike
            case TakeEvent() | TakeBarrier(), TakeEvent() | TakeBarrier():
                assert found is None  # a barrier and what it waits for or lets in
            case Fail(), TakeEvent() | TakeBarrier():
                raise AssertionError("a task that is down takes a step")


def test_swapping_a_message_and_its_reader_is_no_run():
    c = initial_configuration(
        graph_of([Task("a", keep, ("x",), "y", ()), Task("b", keep, ("y",), "z", ())]), {"x": [[1]]}
    )
    first = TakeEvent("a", Message(0, "x", 1, EventContent(1)))
    second = TakeEvent("b", Message(0, "y", 1, EventContent((1,))))
    assert replayed(c, [first, second]) is not None
    assert replayed(c, [second, first]) is None
    steps = record(c, [first, second]).steps
    assert happens_before(steps) == [set(), {0}]
    assert not is_causal(steps, [1, 0])


def test_definition_b3_by_hand():
    """Two chains, a crash, a recovery: what happens before what."""
    c = initial_configuration(
        graph_of([Task("a", keep, ("x",), "y", ()), Task("b", keep, ("y",), "z", ()),
                  Task("c", keep, ("x",), "w", ())]),
        {"x": [[1, 2]]},
    )  # fmt: skip
    a1 = TakeEvent("a", Message(0, "x", 1, EventContent(1)))
    a2 = TakeEvent("a", Message(1, "x", 1, EventContent(2)))
    b1 = TakeEvent("b", Message(0, "y", 1, EventContent((1,))))
    c1 = TakeEvent("c", Message(0, "x", 1, EventContent(1)))
    moves = [a1, c1, a2, b1, Fail("c"), Recover(), c1, a1]
    assert happens_before(record(c, moves).steps) == [
        set(),  # a1
        set(),  # c1
        {0},  # a2: the same task
        {0},  # b1: the message of a1
        {1},  # the crash of c
        {0, 1, 2, 3, 4},  # the recovery
        {0, 1, 2, 3, 4, 5},
        {0, 1, 2, 3, 4, 5},
    ]


def test_what_is_no_permutation_preserves_nothing():
    c = initial_configuration(graph_of([Task("a", keep, ("x",), "y", ())]), {"x": [[1]]})
    steps = record(c, [Fail("a"), Recover()]).steps
    assert is_causal(steps, [0, 1])
    assert not is_causal(steps, [1, 0])
    assert not is_causal(steps, [0])
    assert not is_causal(steps, [0, 0])
    assert not is_causal(steps, [0, 1, 1])


@given(seeds)
def test_reordered_can_draw_every_causal_permutation(seed):
    run = drawn_run(seed, longest=12)
    steps = recorded(run)[:5]
    drawn = {tuple(reordered(steps, random.Random(i))) for i in range(200)}
    assert tuple(range(len(steps))) in drawn
    assert all(is_causal(steps, order) for order in drawn)


@given(seeds)
def test_lemma_b6_only_committing_barriers_change_the_output(seed):
    for move, before, after in steps_of(drawn_run(seed)):
        if is_committing(before, after):
            assert isinstance(move, TakeBarrier)
            assert greatest_common_epoch(after) == greatest_common_epoch(before) + 1
            assert output(before) < output(after)
        else:
            assert output(before) == output(after)


@given(seeds)
def test_lemma_b7_no_step_happens_before_one_of_an_older_epoch(seed):
    run = drawn_run(seed)
    steps = recorded(run)
    for part, _ in split(run):
        mine = [steps[i] for i in part]
        for later, before in enumerate(happens_before(mine)):
            assert all(mine[i].epoch <= mine[later].epoch for i in before)


@given(seeds)
def test_lemma_b8_moving_newer_epochs_back_keeps_what_the_older_commits_show(seed):
    run = drawn_run(seed)
    steps = recorded(run)
    for part, start in split(run):
        for newest in {steps[i].epoch for i in part}:
            order = [
                *(i for i in part if steps[i].epoch < newest),
                *reordered_part(steps, [i for i in part if steps[i].epoch >= newest], seed),
            ]
            before = [run.configurations[part.start], *(run.configurations[i + 1] for i in part)]
            after = replayed(run.initial, [run.moves[i] for i in order], start)
            assert after is not None
            shown = [shown_at_commits(before, newest), shown_at_commits(after, newest)]
            assert shown[0] == shown[1]


def reordered_part(steps, indices, seed):
    order = reordered([steps[i] for i in indices], random.Random(seed))
    return [indices[i] for i in order]


def shown_at_commits(configurations, below):
    return [
        output(after)
        for before, after in pairwise(configurations)
        if is_committing(before, after) and greatest_common_epoch(after) < below
    ]


@given(seeds)
def test_lemma_b9_only_committing_barriers_change_the_latest_common_snapshot(seed):
    for _, before, after in steps_of(drawn_run(seed)):
        is_changed = latest_common_snapshot(before) != latest_common_snapshot(after)
        assert is_changed == is_committing(before, after)


@given(seeds)
def test_lemma_b10_after_a_commit_with_no_newer_step_the_snapshot_is_all_there_is(seed):
    """And the run that has the newer steps left out gets there (Lemma B.11 below)."""
    run = drawn_run(seed)
    steps = recorded(run)
    for part, start in split(run):
        for index in part:
            before, after = run.configurations[index], run.configurations[index + 1]
            if not is_committing(before, after):
                continue
            epoch = greatest_common_epoch(after)
            done = range(part.start, index + 1)
            if all(steps[i].epoch <= epoch for i in done) and not after.is_failed:
                assert latest_common_snapshot(after) == after
            kept = [i for i in done if steps[i].epoch <= epoch and steps[i].rule != "fail"]
            last = replayed(run.initial, [run.moves[i] for i in kept], start)[-1]
            assert latest_common_snapshot(last) == last
            assert last == latest_common_snapshot(after)


@given(seeds)
def test_lemma_b11_newer_steps_at_the_end_do_not_change_the_snapshot(seed):
    run = drawn_run(seed)
    steps = recorded(run)
    for part, start in split(run):
        epoch = greatest_common_epoch(run.configurations[part.stop])
        old = [i for i in part if steps[i].epoch <= epoch]
        new = [i for i in part if steps[i].epoch > epoch]
        configurations = replayed(run.initial, [run.moves[i] for i in (*old, *new)], start)
        assert configurations[-1] == run.configurations[part.stop]
        expected = latest_common_snapshot(configurations[-1])
        for c in configurations[len(old) :]:
            assert latest_common_snapshot(c) == expected


@given(seeds)
def test_every_configuration_of_a_run_is_well_formed(seed):
    assert [ill_formed(c) for c in drawn_run(seed).configurations if ill_formed(c)] == []


@given(seeds)
def test_failing_and_recovering_are_never_seen(seed):
    for move, before, after in steps_of(drawn_run(seed)):
        if isinstance(move, Fail | Recover):
            assert output(before) == output(after)
            assert greatest_common_epoch(before) == greatest_common_epoch(after)
        if isinstance(move, Recover):
            assert after == latest_common_snapshot(after)
            assert not after.is_failed
