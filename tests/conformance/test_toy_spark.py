"""Random flows on our runtime without a JVM, killed anywhere, against the simulator."""

import msgspec
import pytest
from agreement import assert_agreement, expected, inputs_of
from hypothesis import given
from hypothesis import strategies as st
from random_flows import ALL_VERBS, Item, RandomSource, RandomStep, Recipe
from toy_spark import POINTS, ToySpark, make_job

import cutwater as cw
from cutwater.spark.job import spark_plan
from cutwater.spark.lines import late_events_sink
from cutwater.spark.support import check_support

ITEMS = st.lists(
    st.builds(Item, st.sampled_from("abc"), st.integers(0, 7), st.integers(0, 4)), max_size=10
)


@st.composite
def recipes(draw):
    names = draw(st.permutations("xyz"))[: draw(st.integers(1, 3))]
    kinds, delays = st.sampled_from(["numbered", "field", "rule"]), st.integers(0, 3)
    sources = tuple(RandomSource(n, draw(kinds), draw(delays), tuple(draw(ITEMS))) for n in names)
    steps = []
    for number in range(draw(st.integers(1, 8))):
        verb = draw(st.sampled_from(sorted(ALL_VERBS)))
        _, inputs, variants = ALL_VERBS[verb]
        here = len(sources) + number
        newest = st.just(here - 1)
        any_stream = st.one_of(newest, newest, st.integers(0, here - 1))
        reads = tuple(draw(any_stream) for _ in range(inputs))
        steps.append(RandomStep(verb, reads, draw(st.integers(0, variants - 1))))
    return Recipe(sources, tuple(steps))


def write(folder, items, file_size):
    for number in range(0, len(items), file_size):
        lines = [msgspec.json.encode(item) for item in items[number : number + file_size]]
        (folder / f"{number:04}.jsonl").write_bytes(b"\n".join(lines) + b"\n")


@given(
    recipe=recipes(),
    max_bytes=st.integers(1, 300),
    file_size=st.integers(1, 5),
    kills=st.lists(st.sampled_from(POINTS), max_size=6),
    permute=st.none() | st.integers(0, 9),
    seed=st.integers(0, 99),
    partitions=st.integers(1, 4),
    parallelism=st.integers(1, 3),
    close=st.booleans(),
)
def test_any_flow_killed_anywhere_shows_what_the_simulator_shows(
    tmp_path_factory,
    recipe,
    max_bytes,
    file_size,
    kills,
    permute,
    seed,
    partitions,
    parallelism,
    close,
):
    root = tmp_path_factory.mktemp("toy")
    check(root, recipe, max_bytes, file_size, kills, permute, seed, partitions, parallelism, close)


def test_streams_of_different_keys_that_meet_have_one_state(tmp_path):
    items = tuple(Item("abc"[n % 3], n, n % 5) for n in range(12))
    sources = (RandomSource("x", "numbered", 0, items), RandomSource("y", "numbered", 0, items))
    keys = (RandomStep("key_by", (0,), 0), RandomStep("key_by", (1,), 1))
    recipe = Recipe(sources, (*keys, RandomStep("merge", (2, 3)), RandomStep("apply", (4,))))
    check(tmp_path, recipe, 200, 5, [], 1, 1, 2, 2)


def test_a_stream_that_is_merged_with_itself_has_an_order(tmp_path):
    items = tuple(Item("abc"[n % 3], n, n % 5) for n in range(6))
    steps = (RandomStep("merge", (0, 0)), RandomStep("apply", (1,)), RandomStep("accumulate", (2,)))
    recipe = Recipe((RandomSource("x", "numbered", 0, items),), steps)
    check(tmp_path, recipe, 200, 5, [], 1, 1, 2, 2, close=True)


def check(
    root,
    recipe,
    max_bytes,
    file_size,
    kills,
    permute,
    seed,
    partitions,
    parallelism,
    close=False,
):
    flow = recipe.flow()
    check_support(spark_plan(flow))
    job = make_job(
        flow, root, max_bytes_per_epoch=max_bytes, permute=permute, parallelism=parallelism
    )
    for source in recipe.sources:
        write(root / "in" / source.name, source.items, file_size)
    with pytest.MonkeyPatch.context() as patch:
        toy = ToySpark(job, patch, seed, partitions)
        toy.run_to_the_end(kills, close=close)
    wanted = expected(flow, root / "checkpoint", toy.offsets, is_closed=close)
    folders = {name: sink.root for name, sink in job.sinks.items()}
    assert_agreement(wanted, folders)
    if toy.offsets:
        late = cw.simulate(flow, inputs_of(flow, root / "checkpoint", toy.offsets)).late
        kept = {s.name: late_events_sink(s.name) for s in recipe.sources if s.kind == "rule"}
        assert {source: late[source] for source in kept} == {
            source: job.sinks[sink].rows() for source, sink in kept.items()
        }
    for name, sink in job.sinks.items():
        if name in wanted:
            assert sink.rows() == sum(len(lines) for lines in wanted[name])
