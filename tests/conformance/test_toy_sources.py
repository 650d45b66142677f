"""Every kind of source on our runtime, killed anywhere, against the simulator."""

import json
from dataclasses import dataclass
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.connectors.written import KINDS, written
from support.spark.agreement import assert_agreement, expected, inputs_of
from support.spark.toy_spark import POINTS, ToySpark, make_job

import cutwater as cw
from cutwater.spark.connectors.base.side_outputs import bad_records_sink
from cutwater.spark.connectors.files.csv_source import Csv
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.connectors.files.parquet_source import Parquet
from cutwater.spark.connectors.files.sink import Folder
from cutwater.spark.connectors.generator.source import Generated


@dataclass(frozen=True)
class Item:
    name: str
    size: int
    at: int
    note: str | None = None


@dataclass(frozen=True)
class Total:
    name: str
    total: int


@cw.task(initial=0)
def running(total: int, item: Item) -> tuple[int, list[Total]]:
    return total + item.size, [Total(item.name, total + item.size)]


def flow_of(names, *, is_timed):
    """Running totals, and batches that go by times or numbers, of all sources together."""
    flow = cw.Flow("kinds")
    rule = {"time": "at", "watermark": cw.bounded_delay(2)} if is_timed else {}
    streams = [flow.source(name, Item, **rule) for name in names]
    merged = streams[0].merge(*streams[1:]) if streams[1:] else streams[0]
    flow.sink("totals", merged.key_by("name").apply(running))
    flow.sink("batches", merged.batch() if is_timed else merged)
    return flow


texts = st.text(st.sampled_from('ab,"\n\r;é'), min_size=1, max_size=4)
items = st.builds(
    Item, st.sampled_from("abc"), st.integers(-9, 9), st.integers(0, 9), st.none() | texts
)


@st.composite
def settings(draw):
    return {
        "per_file": draw(st.integers(1, 6)),
        "per_epoch": draw(st.integers(1, 9)),
        "kills": draw(st.lists(st.sampled_from(POINTS), max_size=4)),
        "parallelism": draw(st.integers(1, 3)),
        "seed": draw(st.integers(0, 9)),
    }


def run(root, kinds, many, setting, *, is_timed):
    names = [f"source {number}" for number, _ in enumerate(kinds)]
    connectors = {
        name: written(
            kind, root / "in" / name, some, per_file=setting["per_file"],
            per_epoch=setting["per_epoch"],
        )
        for name, kind, some in zip(names, kinds, cycle(many), strict=False)
    }  # fmt: skip
    flow = flow_of(names, is_timed=is_timed)
    job = make_job(flow, root, sources=connectors, parallelism=setting["parallelism"], permute=1)
    with pytest.MonkeyPatch.context() as patch:
        for kind in (Csv, Generated, JsonLines, Parquet):
            patch.setattr(kind, "min_task_weight", 1)
        toy = ToySpark(job, patch, setting["seed"])
        toy.run_to_the_end(list(setting["kills"]))
    inputs = inputs_of(flow, root / "checkpoint", toy.offsets, connectors)
    for name, some in zip(names, cycle(many), strict=False):
        assert [item for item in inputs[name] if isinstance(item, Item)] == list(some)
    wanted = expected(flow, root / "checkpoint", toy.offsets, connectors=connectors)
    folders = {sink: root / "out" / sink for sink in ("totals", "batches")}
    assert_agreement(wanted, folders)
    return toy


@pytest.mark.parametrize("kind", KINDS)
@given(some=st.lists(items, max_size=14), setting=settings(), is_timed=st.booleans())
def test_a_kind_of_source_agrees_with_the_simulator_epoch_by_epoch(
    tmp_path_factory, kind, some, setting, is_timed
):
    root = tmp_path_factory.mktemp("kind")
    if kind == "generator" and not some:
        return
    run(root, [kind], [some], setting, is_timed=is_timed)


@given(
    many=st.lists(st.lists(items, min_size=1, max_size=8), min_size=4, max_size=4),
    setting=settings(),
    is_timed=st.booleans(),
)
def test_all_kinds_in_one_flow_agree_with_the_simulator(tmp_path_factory, many, setting, is_timed):
    run(tmp_path_factory.mktemp("kinds"), KINDS, many, setting, is_timed=is_timed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("point", POINTS[:-1])
def test_a_kill_at_each_point_changes_nothing(tmp_path, kind, point):
    some = [Item("abc"[n % 3], n, n // 2) for n in range(20)]
    setting = {"per_file": 4, "per_epoch": 5, "parallelism": 2, "seed": 1}
    run(tmp_path / "killed", [kind], [some], {**setting, "kills": ["never", point]}, is_timed=True)
    toy = run(tmp_path / "whole", [kind], [some], {**setting, "kills": []}, is_timed=True)
    assert toy.committed > 2
    outputs = [
        sorted(
            line
            for path in (tmp_path / life / "out" / "totals").glob("epoch=*/*.jsonl")
            for line in path.read_bytes().splitlines()
        )
        for life in ("killed", "whole")
    ]
    assert outputs[0] == outputs[1]


def test_small_files_of_one_epoch_are_each_read_by_their_own_header(tmp_path):
    """They are worked on together; also where one of them has a record that cannot be sent."""
    folder = tmp_path / "in" / "items"
    folder.mkdir(parents=True)
    for number in range(6):
        head, row = ("name,size,at", "a,{n},1") if number % 2 else ("at,note,size,name", "1,,{n},a")
        (folder / f"{number}.csv").write_text(f"{head}\n{row.format(n=number)}\n")
    (folder / "3.csv").write_text(f"name,size,at\na,{1 << 70},1\na,3,1\n")
    flow = flow_of(["items"], is_timed=False)
    side_outputs = {bad_records_sink("items"): Folder(str(tmp_path / "bad"))}
    job = make_job(
        flow,
        tmp_path,
        sources={"items": Csv(str(folder))},
        sinks=side_outputs,
        skip_bad_records=True,
    )
    with pytest.MonkeyPatch.context() as patch:
        ToySpark(job, patch, 0).run_to_the_end([])

    def shown(pattern):
        texts = [path.read_text() for path in tmp_path.glob(pattern)]
        return [json.loads(line) for text in texts for line in text.splitlines()]

    totals = sorted(record["total"] for record in shown("out/totals/*/*.jsonl"))
    assert totals == [0, 1, 3, 6, 10, 15]
    (bad,) = shown("bad/*/*.jsonl")
    assert bad["file"].endswith("3.csv")
