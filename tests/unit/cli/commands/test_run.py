"""``cutwater run`` on Spark: results and bad data, with one JVM for all of them."""

import json
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def place(write, tmp_path):
    write()
    (tmp_path / "in").mkdir()
    return tmp_path


@pytest.fixture
def run(server, place):
    def run(*more, target="job.py:flow", out="out", state="state"):
        return server(
            "run", place / target, "--source", f"items={place / 'in'}",
            "--sink", f"sums={place / out}", "--checkpoint", place / state, *more,
        )  # fmt: skip

    return run


def put(place, *records, name="a.jsonl"):
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    (place / "in" / name).write_text("\n".join(lines) + "\n")


def rows(folder):
    parts = sorted(Path(folder).glob("epoch=*/*.jsonl"))
    return [json.loads(line) for part in parts for line in part.read_text().splitlines()]


ENGINE = (
    'engine: micro-batch (mode = "microbatch"): rows are released with their epoch, or before its '
    "end if a sink says so\n"
)
GUARANTEE = (
    "sums: exactly-once: `items` is replayable, `total` is taken to be deterministic (not checked: "
    "cutwater check TARGET), `sums` publishes an epoch by renaming a directory (provided files "
    "stay where they are, unchanged, until they are read; a file that changed is refused)\n"
)
A, B = {"name": "a", "size": 1}, {"name": "a", "size": 2}


def test_a_run_and_the_next(run, place):
    put(place, A)
    done = run()
    assert done.code == 0
    assert done.err == f"totals: starting\n{ENGINE}sums: exactly-once\n"
    assert done.out.splitlines()[0] == "totals: 1 epoch in run 1 of this checkpoint"
    put(place, B, name="b.jsonl")
    done = run("--json", "--explain")
    assert (done.code, done.err) == (0, "totals: starting\n" + ENGINE + GUARANTEE)
    result = json.loads(done.out)
    assert result["guarantees"]["sums"]["kind"] == "exactly-once"
    assert not result["is_stopped"]
    assert (result["flow"], result["generation"], result["epochs"]) == ("totals", 2, 1)
    assert (result["next_epoch"], result["rows"], result["bad_records"]) == (2, {"sums": 2}, {})
    assert rows(place / "out") == [A, {"name": "a", "size": 3}]
    assert not list(place.glob("out/_cutwater/staging/*/*"))


def test_an_empty_source_is_a_notice(run, place):
    (place / "in" / ".hidden").write_text("not counted")
    done = run()
    assert done.code == 0
    assert f"source 'items' is empty: {place / 'in'} has no files" in done.err
    assert rows(place / "out") == []


def test_a_bad_record_names_its_file_and_line_and_can_be_skipped(run, place):
    put(place, A, "", '{"name": "a"}', B, "nonsense")
    done = run()
    assert (done.code, done.out) == (2, "")
    assert (
        f"error: [bad-record] {place / 'in' / 'a.jsonl'}:3 is not a record of source 'items'"
        in done.err
    )
    assert "missing required field `size`" in done.err
    assert "Traceback" not in done.err
    assert rows(place / "out") == []
    debug = run("--debug")
    assert debug.code == 2
    assert "Traceback" in debug.err
    done = run("--on-bad-record", "skip")
    kept = place / "state" / "bad-records" / "items"
    assert done.code == 0
    assert f"bad records of 'items' in all runs: 2, kept in {kept}" in done.out
    assert rows(place / "out") == [A, {"name": "a", "size": 3}]
    assert [(record["line"], record["text"]) for record in rows(kept)] == [
        (3, '{"name": "a"}'),
        (5, "nonsense"),
    ]
    result = json.loads(run("--on-bad-record", "skip", "--json").out)
    assert (result["bad_records"], result["rows"]) == ({"items": 2}, {"sums": 2})


def test_a_step_that_fails_names_the_event(run, place, write):
    write(Path("job.py").read_text().replace("[Item(item.name", "[Item(item.nme"))
    put(place, A)
    done = run()
    assert (done.code, done.out) == (2, "")
    assert "error: [step-failed] apply 'total' (" in done.err
    assert "'Item' object has no attribute 'nme'" in done.err
    assert "it was given " in done.err
    assert rows(place / "out") == []


def test_a_value_that_json_does_not_have_is_a_sentence(run, place, write):
    text = (
        Path("job.py").read_text().replace(".apply(total))", ".map(lambda item: item.size * 1j))")
    )
    write(text)
    put(place, A)
    done = run()
    assert (done.code, done.out) == (2, "")
    assert "error: [not-json] 1j cannot be written to a sink as JSON" in done.err


def test_close_ends_the_input_and_shows_what_was_held_back(run, place, write):
    write(Path("job.py").read_text().replace(".apply(total)", ".batch()"))
    put(place, A, B)
    assert run().code == 0
    assert len(rows(place / "out")) == 1
    held = Path("job.py").read_text().replace('"items", Item', '"items", Item, time="size"')
    write(held, "held_job.py")
    done = run("--close", target="held_job.py:flow", out="held", state="held-state")
    assert done.code == 0
    assert done.out.splitlines()[0] == "totals: 2 epochs in run 1 of this checkpoint"
    assert rows(place / "held") == [[[1, A], [2, B]]]
    again = run(target="held_job.py:flow", out="held", state="held-state")
    assert (again.code, again.out) == (2, "")
    assert "error: [closed-checkpoint] the input of flow 'totals' has ended" in again.err


def test_a_check_is_known_to_the_run_that_follows(run, place, server):
    put(place, A)
    assert server("check", place / "job.py:flow").code == 0
    done = run("--explain")
    assert done.code == 0
    assert (
        "`total` is declared deterministic and `check` found no counterexample on 1 inp" in done.err
    )


def test_a_file_says_what_to_run_and_a_log_what_was_done(server, place):
    put(place, A)
    (place / "run.toml").write_text(
        '[run]\ncheckpoint = "state"\nlog = "run.jsonl"\n'
        '[sources.items]\nkind = "json-lines"\npath = "in"\n'
        '[sinks.sums]\nkind = "folder"\npath = "out"\n'
        '[spark]\n"spark.sql.adaptive.enabled" = false\n'
    )
    done = server("run", place / "job.py:flow", "--config", place / "run.toml")
    assert done.code == 0, done.err
    assert rows(place / "out") == [A]
    events = [json.loads(line) for line in (place / "run.jsonl").read_text().splitlines()]
    kinds = ["started", "notice", "notice", "epoch", "finished"]
    assert [one["event"] for one in events] == kinds
    assert events[3]["rows"] == {"sums": 1}


def test_an_unknown_master_is_a_sentence(run, place):
    put(place, A)
    done = run("--master", "nonsense")
    assert (done.code, done.out) == (2, "")
    assert "error: [spark-did-not-start] Spark did not start: " in done.err
    assert "Traceback" not in done.err
    assert run().code == 0
    assert rows(place / "out") == [A]


def test_modules_beside_the_flow_and_odd_names(run, place, write):
    """Workers cannot import the file, nor what is beside it; brackets are no markup."""
    write("def doubled(n):\n    return 2 * n\n", "beside_job.py")
    text = Path("job.py").read_text()
    write("from __future__ import annotations\nimport beside_job\n" + text.replace(
        "state + item.size, [", "state + beside_job.doubled(item.size), ["
    ).replace('"totals"', '"[red] [bold]"'), "my job.py")  # fmt: skip
    put(place, A, B)
    done = run("--explain", target="my job.py:flow")
    assert done.code == 0
    assert done.err == "[red] [bold]: starting\n" + ENGINE + GUARANTEE
    assert done.out.startswith("[red] [bold]: 1 epoch in run 1")
    assert rows(place / "out") == [A, {"name": "a", "size": 4}]


def test_a_flow_that_changed_is_refused(run, place, write):
    put(place, A)
    assert run().code == 0
    write(Path("job.py").read_text().replace("state: int", "state: float"))
    before = sorted(place.rglob("*"))
    # the server has the module already; a new name is a new module, with the same flow in it
    (place / "changed_job.py").write_text((place / "job.py").read_text())
    done = run(target="changed_job.py:flow")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("totals: starting\nerror: [changed-flow] the checkpoint was ")
    assert "with another flow: the state of step 'total' was " in done.err
    after = [path for path in sorted(place.rglob("*")) if "changed_job" not in str(path)]
    assert [path for path in after if "__pycache__" not in str(path)] == [
        path for path in before if "__pycache__" not in str(path)
    ]
    renamed = (place / "job.py").read_text().replace(".apply(total)", '.apply(total, name="sum")')
    (place / "renamed_job.py").write_text(renamed)
    put(place, B, name="b.jsonl")
    assert run("--forget", "total", target="renamed_job.py:flow").code == 0
    assert rows(place / "out") == [A, B]


def test_a_file_that_changed_is_refused(run, place):
    put(place, A, B)
    assert run("--max-bytes-per-epoch", "10").code == 0
    put(place, A, name="b.jsonl")
    (place / "state" / "spark" / "commits" / "1").unlink()
    put(place, A, A, A)
    done = run()
    assert (done.code, done.out) == (2, "")
    assert f"error: [changed-file] {place / 'in' / 'a.jsonl'} has changed since it was " in done.err
    assert rows(place / "out") == [A, {"name": "a", "size": 3}]


def test_runs_of_one_process_share_one_temporary_folder(run, place, server):
    put(place, A)
    assert run().code == 0
    assert len(list(Path(server.temporary).glob("cutwater-*"))) == 1
