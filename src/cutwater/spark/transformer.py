"""Embeds a flow in an ordinary PySpark job: streaming DataFrames in, a streaming DataFrame out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame

from cutwater.errors import Problem, RefusedError
from cutwater.flow import Flow
from cutwater.flow.steps import Source
from cutwater.spark.binding import bind_sources
from cutwater.spark.checkpoint.compatibility import continued, differences, identity_of
from cutwater.spark.checkpoint.store import Checkpoint
from cutwater.spark.connectors.dataframe.source import Frame
from cutwater.spark.embedded.session import check_session
from cutwater.spark.job.spec import BUCKETS, Job, spark_plan
from cutwater.spark.job.transport import dump_job
from cutwater.spark.microbatch.dataframes import sink_records
from cutwater.spark.microbatch.query import build_query
from cutwater.spark.state.partitions import SETTING, check_partitions
from cutwater.spark.support import check_support

__all__ = ["transform"]


def transform(
    flow: Flow,
    sources: Mapping[str, Frame],
    *,
    checkpoint: str | Path,
    forget: Collection[str] = (),
) -> DataFrame:
    """Return the flow as a streaming DataFrame, which you write yourself.

    The state of the flow is stored in your query's checkpoint, so `checkpoint` is the folder that
    you also pass to ``writeStream`` as ``checkpointLocation``; a flow that is not compatible with
    the state there is refused. The output is exactly-once if the writer that you use is; sources
    need an order for that (`frame`).

    Parameters
    ----------
    flow
        The flow; its problems raise `FlowError`, what Spark cannot run raises `RunError`.
    sources
        For each source a streaming DataFrame: ``frame(df, order=["partition", "offset"])``.
    checkpoint
        The query's ``checkpointLocation``.
    forget
        Steps that the flow no longer has, and whose states in the checkpoint may be lost.

    Returns
    -------
    The records of the flow's sink as rows. A flow with several sinks gives a row for each record
    with a column for each sink, named after it, of which all but one are null.
    """
    planned = spark_plan(flow)
    check_support(planned)
    bound = bind_sources(planned, sources)
    _check_frames(bound)
    _check_late(flow)
    session = next(iter(sources.values())).data.sparkSession
    check_session(session)
    store = Checkpoint.at(checkpoint)
    draft = Job(flow, bound, {}, "", 0, BUCKETS, str(store.root))
    found = store.identity(is_embedded=True)
    partitions = found.partitions if found else int(session.conf.get(SETTING) or 0)
    wanted = identity_of(draft, partitions)
    if found is None and (store.root / "offsets").exists():
        raise RefusedError(_foreign(store.root))
    problems = differences(found or wanted, wanted, forget)
    problems += [] if found else _partition_problems(partitions)
    if problems:
        raise RefusedError(problems)
    identity = continued(found, wanted, forget) if found else wanted
    parallelism = session.sparkContext.defaultParallelism
    job = Job(flow, bound, {}, identity.query_id, 0, BUCKETS, str(store.root), parallelism)
    rows = sink_records(job, dump_job(job), build_query(session, job))
    store.create()
    store.save(identity)
    return rows


def _check_frames(sources: Mapping[str, object]) -> None:
    problems = [
        Problem(
            "not-a-stream",
            f"source '{name}' is bound to {type(bound).__name__}; inside a query of your own a "
            "source is a streaming DataFrame",
            "wrap it: frame(df, order=[...]), or use run",
        )
        for name, bound in sources.items()
        if not isinstance(bound, Frame)
    ]
    if problems:
        raise RefusedError(problems)


def _check_late(flow: Flow) -> None:
    problems = [
        Problem(
            "no-place-for-late-events",
            f"source '{step.name}' has late='keep', and a flow that becomes a DataFrame has no "
            "sink for late events",
            "declare late='drop' or late='fail', or use run",
        )
        for step in flow.steps
        if isinstance(step, Source) and step.watermark and step.late == "keep"
    ]
    if problems:
        raise RefusedError(problems)


def _partition_problems(partitions: int) -> list[Problem]:
    return [
        replace(problem, hint=f"set {SETTING} before: {problem.hint}")
        for problem in check_partitions(partitions, BUCKETS)
    ]


def _foreign(root: Path) -> Problem:
    return Problem(
        "foreign-checkpoint",
        f"{root} is the checkpoint of another query: it has offsets, but no cutwater.json",
        "choose a new folder, for this query alone",
    )
