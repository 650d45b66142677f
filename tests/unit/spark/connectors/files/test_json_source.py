"""The reader: what each line becomes, and the message for a bad one. No JVM is needed."""

import json
from dataclasses import dataclass, replace

import pytest
from support.spark.toy_spark import make_job

import cutwater as cw
from cutwater.errors import extract
from cutwater.spark.checkpoint.compatibility import identity_of
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.connectors.base.side_outputs import bad_records_sink
from cutwater.spark.exchange.envelope import ROW_SCHEMA, unpack_lines
from cutwater.spark.job.transport import dump_job
from cutwater.spark.microbatch.source_reader import EpochDataSource


@dataclass(frozen=True)
class Item:
    name: str
    size: int


@pytest.fixture
def items(tmp_path):
    flow = cw.Flow("copy")
    flow.sink("out", flow.source("items", Item))

    def start(**settings):
        job = make_job(flow, tmp_path, **{"max_bytes_per_epoch": 1 << 20, **settings})
        if job.skip_bad_records:
            job.sinks[bad_records_sink("items")] = job.sinks["out"]
        return EpochDataSource.of(dump_job(job), "items", 0)({}).streamReader(ROW_SCHEMA)

    return start


def put(tmp_path, text, name="a.jsonl"):
    path = tmp_path / "in" / "items" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def latest(reader, start=0):
    return reader.latestOffset({"entry": start}, reader.getDefaultReadLimit())["entry"]


def test_a_run_that_another_took_over_from_plans_nothing(items, tmp_path):
    """The log may have been compacted meanwhile, and its entry would count as a new one."""
    put(tmp_path, '{"name":"a","size":1}\n')
    sleeping = items()
    flow = cw.Flow("copy")
    flow.sink("out", flow.source("items", Item))
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    checkpoint.create()
    checkpoint.save(replace(identity_of(make_job(flow, tmp_path), 2), generation=1))
    with pytest.raises(RuntimeError) as refused:
        latest(sleeping)
    assert "[fenced] generation 1 has taken the checkpoint" in str(extract(str(refused.value)))
    assert not list((checkpoint.root / "sources" / "items").rglob("*.json"))


def read(reader, start, end):
    """The entries of an epoch, by target, in order."""
    found = {}
    for part in reader.partitions({"entry": start}, {"entry": end}):
        for batch in reader.read(part):
            assert batch.schema.names == ROW_SCHEMA.names
            for row in batch.to_pylist():
                entries = zip(*unpack_lines(row["body"]), strict=True)
                found.setdefault(row["target"], []).extend(entries)
    return {target: sorted(entries) for target, entries in found.items()}


def rows(reader, start=0):
    entries = read(reader, start, latest(reader, start)).get(1, [])
    return [json.loads(entry[1])["name"] for entry in entries]


def line(name, size=1):
    return json.dumps({"name": name, "size": size})


@pytest.mark.parametrize(
    "text",
    [
        f"{line('a')}\n{line('b')}\n",
        f"{line('a')}\n{line('b')}",
        f"{line('a')}\r\n{line('b')}\r\n",
        f"\n\n{line('a')}\n   \n\t\r\n{line('b')}\n\n",
        f"  {line('a')}  \n{line('b')} ",
    ],
    ids=["lines", "no last end", "CRLF", "blank lines", "spaces"],
)
def test_lines_are_read_in_any_dress(items, tmp_path, text):
    put(tmp_path, text)
    assert rows(items()) == ["a", "b"]


@pytest.mark.parametrize("text", ["", "\n", "\r\n\r\n", "   "])
def test_nothing_is_read_from_nothing(items, tmp_path, text):
    put(tmp_path, text)
    assert rows(items()) == []


def test_a_line_end_inside_a_string_is_no_line_end(items, tmp_path):
    put(tmp_path, line("a\nb\u2028c\x85d\x0be") + "\n" + line("f"))
    assert rows(items()) == ["a\nb\u2028c\x85d\x0be", "f"]


def test_the_order_is_the_file_then_the_place_in_it(items, tmp_path):
    put(tmp_path, f"{line('2')}\n{line('3')}\n", "b")
    put(tmp_path, f"{line('1')}\n", "a")
    reader = items()
    assert rows(reader) == ["1", "2", "3"]
    put(tmp_path, f"{line('4')}\n", "0")
    assert rows(reader, 1) == ["4"]


@pytest.mark.parametrize("parallelism", [1, 2, 7])
def test_parts_do_not_change_what_is_read(items, tmp_path, parallelism):
    names = [f"{number:06}" + "x" * 90 for number in range(3000)]
    put(tmp_path, "\n".join(line(name) for name in names), "a")
    put(tmp_path, line("last"), "b")
    reader = items(parallelism=parallelism)
    end = latest(reader)
    assert len(reader.partitions({"entry": 0}, {"entry": end})) in (parallelism, parallelism + 1, 6)
    (entries,) = read(reader, 0, end).values()
    assert [json.loads(entry[1])["name"] for entry in entries] == [*names, "last"]
    assert len({entry[0] for entry in entries}) == len(entries)


def test_an_orphan_entry_is_the_next_epoch(items, tmp_path):
    """It was written, but the offset that names it was not logged: a crash came between."""
    put(tmp_path, f"{line('a')}\n{line('b')}\n")
    assert latest(items(max_bytes_per_epoch=1)) == 1
    put(tmp_path, line("c"), "0")
    again = items()
    assert rows(again) == ["a"]
    assert rows(again, 1) == ["b", "c"]


def test_a_log_that_is_older_than_the_offset_is_refused(items, tmp_path):
    put(tmp_path, line("a"))
    with pytest.raises(RuntimeError) as failed:
        latest(items(), start=3)
    (problem,) = extract(str(failed.value)).problems
    assert problem.code == "missing-entry"
    assert "3.json is missing" in problem.message


def test_caught_up_means_what_was_there_at_the_start(items, tmp_path):
    put(tmp_path, line("a"))
    reader = items()
    reader.prepareForTriggerAvailableNow()
    put(tmp_path, line("late"), "z")
    assert rows(reader) == ["a"]
    assert latest(reader, 1) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"name": "a"}', "missing required field `size`"),
        (b'{"name": "a", "size": "1"}', "Expected `int`, got `str`"),
        (b'{"name": "a", "size": 1', "truncated"),
        (b"name,size", "malformed"),
        (b'[{"name": "a", "size": 1}]', "Expected `object`, got `array`"),
        (b'{"name": "\xff", "size": 1}', "utf-8"),
        (b"\xef\xbb\xbf" + line("a").encode(), "malformed"),
        (b'{"more": ' + b"[" * 100_000, "recursion"),
        (line("a").encode() + b" " + line("b").encode(), "malformed"),
    ],
)
def test_a_bad_record_is_named_by_file_and_line(items, tmp_path, text, message):
    path = put(tmp_path, line("good").encode() + b"\n\n" + text + b"\n" + line("good").encode())
    with pytest.raises(RuntimeError) as failed:
        rows(items())
    (problem,) = extract(str(failed.value)).problems
    assert problem.code == "bad-record"
    assert problem.message.startswith(f"{path}:3 is not a record of source 'items': ")
    assert message in problem.message
    assert len(problem.message) < 1000


def test_the_line_is_right_in_a_later_epoch_too(items, tmp_path):
    put(tmp_path, f"{line('a')}\n{line('b')}\n{line('c')}\nbad\n")
    reader = items(max_bytes_per_epoch=40)
    assert latest(reader) == 1
    with pytest.raises(RuntimeError) as failed:
        rows(reader, 1)
    assert ":4 is not a record" in extract(str(failed.value)).problems[0].message


def test_bad_records_are_kept_in_a_side_output(items, tmp_path):
    put(tmp_path, "bad\n" + line("a") + "\n" + '{"name": 1}\n' * 3 + line("b"))
    reader = items(skip_bad_records=True)
    good, bad = read(reader, 0, latest(reader)).values()
    if len(good) != 2:
        good, bad = bad, good
    assert [json.loads(entry[1])["name"] for entry in good] == ["a", "b"]
    kept = [json.loads(entry[1]) for entry in bad]
    assert [record["line"] for record in kept] == [1, 3, 4, 5]
    assert kept[0]["text"] == "bad"
    assert kept[0]["file"].endswith("a.jsonl")
    assert all(record["error"] for record in kept)
    assert len({entry[0] for entry in bad}) == 4


def test_many_bad_records_are_counted_without_reading_the_file_for_each(items, tmp_path):
    put(tmp_path, (line("a") + "\n" + "bad\n" * 9) * 3000)
    reader = items(skip_bad_records=True)
    found = read(reader, 0, latest(reader))
    assert sorted(len(entries) for entries in found.values()) == [3000, 27000]


@pytest.mark.parametrize("change", ["content", "deleted"])
def test_a_file_that_changed_since_it_was_planned_is_refused(items, tmp_path, change):
    path = put(tmp_path, line("a"))
    reader = items()
    end = latest(reader)
    if change == "deleted":
        path.unlink()
    else:
        path.write_text(line("another"))
    with pytest.raises(RuntimeError) as failed:
        read(reader, 0, end)
    (problem,) = extract(str(failed.value)).problems
    assert problem.code == ("unreadable-file" if change == "deleted" else "changed-file")
