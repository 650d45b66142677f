"""Random flows on our runtime without a JVM, killed anywhere, against the simulator."""

from collections import Counter
from dataclasses import dataclass, replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.flows.random_flows import ALL_VERBS, Item, RandomSource, RandomStep, Recipe
from support.spark.agreement import assert_agreement, expected, inputs_of, parts_of
from support.spark.toy_spark import POINTS, ToySpark, make_job

import cutwater as cw
from cutwater.spark.connectors.base.side_outputs import late_events_sink
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.job.spec import spark_plan
from cutwater.spark.operators import segment_runner
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


def run(root, recipe, setting):
    flow = recipe.flow()
    check_support(spark_plan(flow))
    job = make_job(
        flow,
        root,
        max_bytes_per_epoch=setting.max_bytes,
        permute=setting.permute,
        parallelism=setting.parallelism,
        buckets=setting.buckets,
    )
    for source in recipe.sources:
        write(root / "in" / source.name, source.items, setting.file_size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JsonLines, "min_task_weight", setting.min_task_weight)
        patch.setattr(segment_runner, "PIECE_ROWS", setting.piece_rows)
        toy = ToySpark(job, patch, setting.seed, setting.partitions)
        toy.run_to_the_end(list(setting.kills), close=setting.close)
    return flow, job, toy


def write(folder, items, file_size):
    for number in range(0, len(items), file_size):
        lines = [msgspec.json.encode(item) for item in items[number : number + file_size]]
        (folder / f"{number:04}.jsonl").write_bytes(b"\n".join(lines) + b"\n")


@dataclass(frozen=True)
class Setting:
    """How a flow is run; no result may depend on it, but for where epochs are cut."""

    max_bytes: int = 200
    file_size: int = 5
    kills: tuple[str, ...] = ()
    permute: int | None = 1
    seed: int = 1
    buckets: int = 16
    partitions: int = 2
    parallelism: int = 2
    min_task_weight: int = 1
    close: bool = True
    piece_rows: int = 65_536
    """Into pieces of how many events what a bucket gets is cut."""


USUAL = Setting()
SETTINGS = st.builds(
    Setting,
    max_bytes=st.integers(1, 300),
    file_size=st.integers(1, 5),
    kills=st.lists(st.sampled_from(POINTS), max_size=6).map(tuple),
    permute=st.none() | st.integers(0, 9),
    seed=st.integers(0, 99),
    buckets=st.sampled_from([1, 3, 16]),
    partitions=st.integers(1, 4),
    parallelism=st.integers(1, 3),
    min_task_weight=st.sampled_from([1, 64 << 10]),
    close=st.booleans(),
    piece_rows=st.sampled_from([1, 2, 5, 65_536]),
)


@given(recipes(), SETTINGS)
def test_any_flow_killed_anywhere_shows_what_the_simulator_shows(tmp_path_factory, recipe, setting):
    check(tmp_path_factory.mktemp("toy"), recipe, setting)


def test_streams_of_different_keys_that_meet_have_one_state(tmp_path):
    items = tuple(Item("abc"[n % 3], n, n % 5) for n in range(12))
    sources = (RandomSource("x", "numbered", 0, items), RandomSource("y", "numbered", 0, items))
    keys = (RandomStep("key_by", (0,), 0), RandomStep("key_by", (1,), 1))
    recipe = Recipe(sources, (*keys, RandomStep("merge", (2, 3)), RandomStep("apply", (4,))))
    check(tmp_path, recipe)


def test_a_stream_that_is_merged_with_itself_has_an_order(tmp_path):
    items = tuple(Item("abc"[n % 3], n, n % 5) for n in range(6))
    steps = (RandomStep("merge", (0, 0)), RandomStep("apply", (1,)), RandomStep("accumulate", (2,)))
    recipe = Recipe((RandomSource("x", "numbered", 0, items),), steps)
    check(tmp_path, recipe)


@pytest.mark.parametrize("piece_rows", [1, 2, 5])
@pytest.mark.parametrize("second", ["apply", "accumulate", "vectorised"])
def test_what_a_bucket_gets_may_be_worked_on_in_pieces(tmp_path, piece_rows, second):
    """The second operator gets runs of the first one's buckets, which overlap."""
    items = tuple(Item("abcdefgh"[n * 5 % 8], n, n % 5) for n in range(60))
    steps = (
        RandomStep("key_by", (0,), 0),
        RandomStep("apply", (1,)),
        RandomStep("key_by", (2,), 1),
    )
    recipe = Recipe((RandomSource("x", "numbered", 0, items),), (*steps, RandomStep(second, (3,))))
    check(tmp_path, recipe, Setting(max_bytes=10_000, permute=None, piece_rows=piece_rows))


# Steps that work on columns, where these meet what does not: a verb and its variant.
COLUMNS = {
    "behind maps": "map filter key_by:1 vectorised map filter",
    "read twice": "key_by:1 merge vectorised:1 merge",
    "read twice and keyed": "merge key_by:1 vectorised:2 apply",
    "keyed anew": "key_by:1 vectorised:2 key_by:2 vectorised:1 aggregate:5",
    "one behind another": "key_by:1 vectorised vectorised:1 vectorised:2",
    "between tasks": "key_by:1 apply vectorised:1 apply aggregate:4",
    "without a key": "vectorised aggregate:4 vectorised:2",
    "with times behind": "key_by:1 vectorised:2 batch aggregate:5 window",
    "folded early": "map aggregate:7 aggregate:7 vectorised:1",
    "folded early and read twice": "merge aggregate:7 vectorised",
}


@pytest.mark.parametrize("kind", ["numbered", "rule"])
@pytest.mark.parametrize("shape", COLUMNS)
def test_columns_meet_everything_else(tmp_path, shape, kind):
    items = tuple(Item("abc"[n % 3], n // 2, n % 5) for n in range(24))
    steps = []
    for before, step in enumerate(COLUMNS[shape].split()):
        verb, _, choice = step.partition(":")
        reads = (before,) * ALL_VERBS[verb][1]  # a merge is one with itself
        steps.append(RandomStep(verb, reads, int(choice or 0)))
    recipe = Recipe((RandomSource("x", kind, 3, items),), tuple(steps))
    check(tmp_path, recipe, replace(USUAL, max_bytes=300, kills=("staged", "never", "published")))


@pytest.mark.parametrize("point", POINTS)
def test_an_end_that_is_killed_anywhere_is_shown_once(tmp_path, point):
    items = tuple(Item("abc"[n % 3], n, n % 5) for n in range(5))
    sources = tuple(RandomSource(name, "field", 0, items) for name in "xy")
    steps = (RandomStep("join", (0, 1)), RandomStep("window", (2,)), RandomStep("batch", (3,)))
    in_the_end = ("never", "never", point, point)
    check(tmp_path, Recipe(sources, steps), replace(USUAL, max_bytes=999, kills=in_the_end))


# Steps whose results, taken all together, say nothing about when they were shown.
STEADY = (
    RandomStep("key_by", (0,), 1),
    RandomStep("window", (1,), 0),
    RandomStep("window", (1,), 1),
    RandomStep("window", (1,), 2),
    RandomStep("aggregate", (1,), 0),
    RandomStep("join", (1, 0)),
    RandomStep("histogram", (1,), 0),
)


@given(ITEMS, SETTINGS)
def test_results_do_not_depend_on_epochs_buckets_or_partitions(tmp_path_factory, items, setting):
    """Nothing is late here, and steps that show how much came at once are left out."""
    recipe = Recipe((RandomSource("x", "rule", 8, tuple(items)),), STEADY)
    setting = replace(setting, close=True)
    flow, job, _ = run(tmp_path_factory.mktemp("toy"), recipe, setting)
    simulated = cw.simulate(flow, {"x": items})
    for sink in simulated.events:
        parts = parts_of(job.sinks[sink].root).values()
        found = Counter(line for epoch in parts for part in epoch for line in part)
        assert found == Counter(map(msgspec.json.encode, simulated[sink])), sink


def check(root, recipe, setting=USUAL):
    flow, job, toy = run(root, recipe, setting)
    wanted = expected(flow, root / "checkpoint", toy.offsets, is_closed=setting.close)
    folders = {name: sink.root for name, sink in job.sinks.items()}
    assert_agreement(wanted, folders)
    if toy.offsets:
        late = cw.simulate(flow, inputs_of(flow, root / "checkpoint", toy.offsets)).late
        kept = {s.name: late_events_sink(s.name) for s in recipe.sources if s.kind == "rule"}
        assert {source: late[source] for source in kept} == {
            source: job.sinks[sink].row_count(job.claim_of(sink)) for source, sink in kept.items()
        }
    for name, sink in job.sinks.items():
        if name in wanted:
            assert sink.row_count(job.claim_of(name)) == sum(len(lines) for lines in wanted[name])
