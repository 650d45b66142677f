"""``run``: what it asks of its arguments before anything starts."""

from dataclasses import dataclass, replace

import pytest
from pyspark.errors import StreamingQueryException
from support.fuzz.checkpoints import make_checkpoint

import cutwater as cw
from cutwater import spark as cutwater_spark
from cutwater.errors import (
    ConnectorError,
    FencedError,
    InputError,
    Problem,
    RefusedError,
    RunError,
    StepError,
    embed,
)
from cutwater.spark import runner
from cutwater.spark.checkpoint.compatibility import identity_of
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.query_failures import cause_of, sentence_of


@dataclass(frozen=True)
class Item:
    name: str


@pytest.fixture
def flow():
    made = cw.Flow("copy")
    made.sink("out", made.source("items", Item))
    return made


@pytest.fixture
def started(monkeypatch):
    """Stop where a session would be started; say with which job."""
    jobs = []

    def embedded_session(*args, **kwargs):
        raise LookupError

    def job(*args, **kwargs):
        jobs.append(real(*args, **kwargs))
        return jobs[-1]

    real = runner.Job
    monkeypatch.setattr(runner, "Job", job)
    monkeypatch.setattr(runner, "embedded_session", embedded_session)
    return jobs


def test_folders_are_absolute_for_other_processes(flow, started, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for source in ("in", cutwater_spark.json_lines("in", 5)):
        for sink in ("out", cutwater_spark.folder("out")):
            with pytest.raises(LookupError):
                cutwater_spark.run(
                    flow, sources={"items": source}, sinks={"out": sink}, checkpoint="state"
                )
            assert started[-1].sources["items"].path == str(tmp_path / "in")
            assert started[-1].sinks["out"].path == str(tmp_path / "out")
            assert started[-1].checkpoint == str(tmp_path / "state")


@pytest.mark.usefixtures("started")
def test_an_epoch_must_be_able_to_read_something(flow, tmp_path):
    with pytest.raises(RunError, match="no-progress"):
        cutwater_spark.run(
            flow,
            sources={"items": cutwater_spark.json_lines(str(tmp_path), 0)},
            sinks={"out": tmp_path / "out"},
            checkpoint=tmp_path / "state",
        )
    assert list(tmp_path.iterdir()) == []


def run(flow, tmp_path, **settings):
    (tmp_path / "in").mkdir(exist_ok=True)
    cutwater_spark.run(
        flow,
        sources={"items": tmp_path / "in"},
        sinks={"out": tmp_path / "out"},
        checkpoint=tmp_path / "state",
        **settings,
    )


@pytest.mark.usefixtures("started")
@pytest.mark.parametrize("seconds", [0, -1.0, float("nan")])
def test_the_time_until_a_run_hangs_is_a_time(flow, tmp_path, seconds):
    with pytest.raises(RefusedError, match="not-seconds"):
        run(flow, tmp_path, hung_after=seconds)


@pytest.mark.usefixtures("started")
def test_a_run_without_end_cannot_be_closed(flow, tmp_path):
    with pytest.raises(RunError, match="close-of-an-endless-run"):
        run(flow, tmp_path, until="stopped", close=True)
    assert not (tmp_path / "state").exists()


def ended(flow, tmp_path, *, is_closed):
    """A checkpoint whose last epoch was begun, and perhaps finished."""
    checkpoint = Checkpoint(tmp_path / "state")
    checkpoint.create()
    draft = runner.Job(flow, {}, {}, "", 0, runner.BUCKETS, "")
    identity = identity_of(draft, 2)
    checkpoint.save(replace(identity, is_closed=is_closed))
    offsets = checkpoint.spark / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").write_text('v1\n{}\n{"entry": 1}')
    (offsets / "1").write_text('v1\n{}\n{"entry": 1, "end": true}')
    return checkpoint


@pytest.mark.usefixtures("started")
@pytest.mark.parametrize("close", [True, False])
def test_a_closed_checkpoint_is_refused(flow, tmp_path, close):
    checkpoint = ended(flow, tmp_path, is_closed=True)
    assert checkpoint.is_ending()
    with pytest.raises(RunError, match="closed-checkpoint") as refused:
        run(flow, tmp_path, close=close)
    assert "start with a new checkpoint" in str(refused.value)


@pytest.mark.usefixtures("started")
def test_a_run_that_was_killed_while_it_closed_goes_on_only_to_close(flow, tmp_path):
    ended(flow, tmp_path, is_closed=False)
    with pytest.raises(RunError, match="closed-checkpoint") as refused:
        run(flow, tmp_path)
    assert "run with close again" in str(refused.value)
    with pytest.raises(LookupError):
        run(flow, tmp_path, close=True)


@pytest.mark.usefixtures("started")
def test_a_checkpoint_that_was_not_closed_goes_on(flow, tmp_path):
    checkpoint = ended(flow, tmp_path, is_closed=False)
    (checkpoint.spark / "offsets" / "1").unlink()
    assert not checkpoint.is_ending()
    with pytest.raises(LookupError):
        run(flow, tmp_path)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("[X] a\n  File x\nValueError: no\n\nJVM stacktrace:\nZError: y", "ValueError: no"),
        ("something else\nmore", "something else"),
        ("", "no reason given"),
        (
            "[STREAM_FAILED] Query [id = 8, runId = 9] terminated with exception: Job aborted due "
            "to stage failure: Task 1 in stage 1.0 failed 1 times, most recent failure: Lost task "
            "1.0 in stage 1.0 (TID 2) (10.0.0.1 executor driver): org.apache.spark.SparkException: "
            "Python worker exited unexpectedly (crashed). Consider setting 'spark.x' to 'true'.",
            "Python worker exited unexpectedly (crashed)",
        ),
        ("pyspark.errors.PySparkError: [A] b\n=== Streaming Query ===\nC: d", "pyspark.errors"),
    ],
)
def test_the_cause_is_the_line_that_says_what_happened(text, cause):
    assert cause_of(text).startswith(cause)
    assert "STREAM_FAILED" not in cause_of(text)


@pytest.mark.parametrize(
    ("raised", "seen"),
    [
        (FencedError.because("words"), FencedError),
        (ConnectorError(Problem("unavailable", "words")), ConnectorError),
        (RefusedError(Problem("damaged", "words")), RefusedError),
        (InputError(Problem("bad-record", "words")), InputError),
        (StepError(Problem("step-failed", "words")), StepError),
        (RunError(Problem("late-event", "words")), RunError),
    ],
)
def test_what_ends_a_run_is_its_own_failure_or_the_users(tmp_path, raised, seen):
    failed = StreamingQueryException(f"x {embed(raised)} y")
    error = sentence_of(failed, Checkpoint(tmp_path))
    assert (type(error), error.problems) == (seen, raised.problems)


STOPPING = (
    'java.lang.NullPointerException: Cannot invoke "org.apache.spark.scheduler.DAGScheduler.'
    'cleanupQueryJobs(long)" because the return value of '
    '"org.apache.spark.SparkContext.dagScheduler()" is null'
)


@pytest.mark.parametrize(
    ("logged", "code"),
    [
        ("ERROR Executor: Exception in task 0.0\n", "spark-failed"),
        ("org.apache.arrow.memory.OutOfMemoryException: no buffer\n", "jvm-out-of-memory"),
    ],
)
def test_a_query_that_ends_as_spark_stops_names_the_memory_that_spark_lacked(
    tmp_path, logged, code
):
    """Spark stops once a task ran out of memory; the query may fail first, by what is missing."""
    checkpoint = make_checkpoint(tmp_path).checkpoint
    (checkpoint.root / "scratch").mkdir(exist_ok=True)
    (checkpoint.root / "scratch" / "spark.log").write_text(logged)
    found = sentence_of(StreamingQueryException(STOPPING), checkpoint)
    assert [problem.code for problem in found.problems] == [code]
    other = sentence_of(StreamingQueryException("KeyError: x"), checkpoint)
    assert [problem.code for problem in other.problems] == ["spark-failed"]


def test_a_dataframe_cannot_wait_for_a_loop():
    def body(stream):
        return stream.key_by("name", name="anew").filter(bool)

    def looping(plan):
        made = cw.Flow("loops")
        made.sink("out", made.source("items", Item).iterate(body, plan=plan, name="loop"))
        return made

    rows = {"items": Frame.__new__(Frame)}
    assert not runner._feeds_back(looping(None), rows)
    with pytest.raises(RefusedError, match="'items' is a DataFrame, which cannot be held back"):
        runner._feeds_back(looping("log"), rows)
