"""Recovery: what every start of a run does, whether it is the first or follows a crash.

The protocol, in this order; a crash may interrupt any step, and the next start repeats it:

=======  =====================================  =============================================
step     what it does                           which obligation it discharges
=======  =====================================  =============================================
lock     `checkpoint.lock.locked`, held by the  one recovering run at a time: F-Recover is one
         caller until the query has ended       step of the whole dataflow (P1, Def. 4.5)
agree    `agree`: flow, state, plan and output  only the dataflow that took the snapshots is
         belong together                        recovered from them (P1, 6.8)
claim    `_claim`: a higher generation, first   a new identity for this run, durable before
         in the checkpoint                      anything is written in its name
fence    `_claim`: then in the ledger of every  zombies of earlier runs can publish nothing any
         sink                                   more (P2: outputs B change by one system)
settle   `SinkConnector.claim`: removes staged  what was neither released nor acknowledged has
         rows of earlier attempts, finishes     no effect (P1: messages after the common
         interrupted take-overs                 snapshot are dropped)
replan   `_settle`: an epoch is forgotten if    an epoch that was released in part is finished
         nothing of it was released; else it    by the flow that began it (P2, V.B), unless the
         is finished by the same flow           user says otherwise; any other had no effect
         (`checkpoint.newest_epoch`)            (P1: N' may read its input again)
replay   the query itself, once it starts: the  the same inputs in the same order (P1: N' from
         remaining epoch is read from the       the snapshot; P2: t(x) is stable), so rows that
         `offset_log`, on the state of the      the ledger has are dropped and the rest is
         epoch before it                        released: exactly once
=======  =====================================  =============================================

What is *not* here: atomic recovery across processes. Spark restarts all of them together, so no
task of the old generation takes part in the new one; a zombie that wakes up is fenced.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from pyspark.sql import SparkSession

from cutwater.errors import Problem, RefusedError, many
from cutwater.spark.checkpoint.compatibility import (
    Identity,
    continued,
    differences,
    half_released,
    identity_of,
    mixture,
)
from cutwater.spark.checkpoint.newest_epoch import (
    drop_unplanned,
    forget_newest,
    released_of,
    unbound_side_outputs,
)
from cutwater.spark.checkpoint.power_loss import SparkFiles
from cutwater.spark.checkpoint.relocate import relocate
from cutwater.spark.checkpoint.sink_records import (
    ACCEPTABLE,
    changed_outputs,
    output_problems,
    remember_sinks,
)
from cutwater.spark.checkpoint.store import Checkpoint, half_rescaled
from cutwater.spark.checkpoint.verify import damages_of_logs
from cutwater.spark.connectors.base.refusals import ANOTHER_CHECKPOINT
from cutwater.spark.connectors.base.sink import SinkConnector
from cutwater.spark.job.spec import Job
from cutwater.spark.state.partitions import check_partitions, suitable_partitions
from cutwater.spark.stopping import StopRequest

__all__ = ["Resumption", "agree", "recover", "refuse_closed"]

_TOOK_OVER = {"adopt": "its rows are kept", "fresh": "its rows are deleted"}


@dataclass(frozen=True)
class Resumption:
    """How the user asked to resume from the checkpoint."""

    forget: Collection[str] = ()
    """Removed steps, whose states may be dropped."""
    partitions: int | None = None
    """The number of partitions that was asked for; None: not specified."""
    others: Literal["refuse", "adopt", "fresh"] = "refuse"
    """What to do with sinks that belong to another checkpoint."""
    close: bool = False
    """Does the run end the input?"""
    accept_gap: Collection[str] = ()
    """Sinks whose output lacks published rows, and which may continue without them."""
    finish_with_this_flow: bool = False
    """May this flow finish an epoch that another flow has released in part?"""


def recover(
    checkpoint: Checkpoint,
    draft: Job,
    asked: Resumption,
    spark: SparkSession,
    notify: Callable[[str], None],
) -> Job:
    """Return the job to start, with every earlier run fenced; the caller holds the lock."""
    _settle_power_loss(checkpoint, draft, notify)
    refuse_closed(checkpoint, asked.close)
    _refuse_damaged(checkpoint)
    relocate(checkpoint)
    StopRequest(checkpoint.root).withdraw()
    identity = agree(checkpoint, draft, asked)
    job = _claim(checkpoint, draft, identity, asked, spark, notify)
    _settle(checkpoint, job, replace(identity, generation=job.generation), asked, notify)
    _make_durable(checkpoint, job)
    return job


def _settle_power_loss(checkpoint: Checkpoint, draft: Job, notify: Callable[[str], None]) -> None:
    """After a reboot, discard what Spark had not synced: those files may be torn."""
    if not draft.has_frames and SparkFiles(checkpoint.root).discard_unsynced():
        notify("the machine was rebooted: the last epoch is rerun from durable data")


def _make_durable(checkpoint: Checkpoint, job: Job) -> None:
    """Sync the files that Spark restarts from, or record that they may not survive a power loss."""
    files = SparkFiles(checkpoint.root, job.generation)
    if job.survives_power_loss:
        files.sync_all()
    else:
        files.promise_nothing()


def refuse_closed(checkpoint: Checkpoint, close: bool) -> None:
    """Refuse a closed checkpoint, except to close it again if a crash came before the end."""
    found = checkpoint.identity()
    if found is None or not (found.is_closed or (checkpoint.is_ending() and not close)):
        return
    raise RefusedError(
        Problem(
            "closed-checkpoint",
            f"the input of flow '{found.flow}' has ended: the checkpoint {checkpoint.root} was "
            "closed and takes no more input",
            "start with a new checkpoint and an empty output"
            if found.is_closed
            else "run with close again to finish the last epoch",
        )
    )


def _refuse_damaged(checkpoint: Checkpoint) -> None:
    """Refuse damaged logs before Spark reads them; with the lock held, nothing else writes."""
    problems = damages_of_logs(checkpoint) if checkpoint.identity() else []
    if problems:
        raise RefusedError(problems)


def agree(checkpoint: Checkpoint, draft: Job, asked: Resumption) -> Identity:
    """Return the identity to resume with; refuses what does not go together. Writes nothing.

    It has no number of partitions yet if the checkpoint is new and none was asked for.
    """
    found = checkpoint.identity()
    partitions = asked.partitions or (found.partitions if found else 0)
    wanted = identity_of(draft, partitions)
    problems = [] if asked.partitions is None else check_partitions(asked.partitions, draft.buckets)
    problems += half_rescaled(checkpoint)
    problems += differences(found or wanted, wanted, asked.forget)
    problems += _unknown_gaps(draft, asked)
    query_id = found.query_id if found else None
    for name, sink in draft.sinks.items():
        problems += _sink_problems(checkpoint, name, sink, query_id, asked)
        problems += sink.schema_problems(name, draft.addresses.record_of(name))
    if found and not problems and checkpoint.is_mid_epoch() and found.code != wanted.code:
        _refuse_mixture(checkpoint, found, wanted, replace(draft, query_id=found.query_id), asked)
    if problems:
        raise RefusedError(problems)
    return continued(found, wanted, asked.forget) if found else wanted


def _unknown_gaps(draft: Job, asked: Resumption) -> Iterator[Problem]:
    names = draft.own_sinks
    for name in asked.accept_gap:
        if name not in names:
            yield Problem(
                "unknown-sink",
                f"accept_gap names sink '{name}', and the flow has no such sink",
                f"it has: {', '.join(names)}",
            )


def _sink_problems(
    checkpoint: Checkpoint, name: str, sink: SinkConnector, query_id: str | None, asked: Resumption
) -> list[Problem]:
    problems = []
    found = output_problems(checkpoint, name, sink, query_id)
    for problem in found:
        if asked.others == "refuse" or problem.code != ANOTHER_CHECKPOINT:
            problems.append(problem)
        elif checkpoint.next_epoch():
            problems.append(_too_late_to(asked.others, name, sink, checkpoint))
    if query_id is not None and not found:
        strange = changed_outputs(checkpoint.root, name, sink, query_id)
        is_accepted = name in asked.accept_gap
        problems += [p for p in strange if not (is_accepted and p.code in ACCEPTABLE)]
    return problems


def _claim(
    checkpoint: Checkpoint,
    draft: Job,
    identity: Identity,
    asked: Resumption,
    spark: SparkSession,
    notify: Callable[[str], None],
) -> Job:
    """Claim the next generation: durably in the checkpoint, then in the ledger of every sink.

    The checkpoint comes first. A crash between the two leaves ledgers that are behind, which the
    next start overtakes; in the other order it would claim the same generation twice.
    """
    found = checkpoint.identity()
    ledgers = [sink.generation(name) for name, sink in draft.sinks.items()]
    generation = max([identity.generation, *ledgers]) + 1
    partitions = identity.partitions or suitable_partitions(spark, draft.buckets)
    # The rest stays that of the flow that began the newest epoch, until that epoch is settled.
    checkpoint.save(replace(found or identity, generation=generation, partitions=partitions))
    job = replace(
        draft,
        query_id=identity.query_id,
        generation=generation,
        parallelism=spark.sparkContext.defaultParallelism,
    )
    side_outputs = unbound_side_outputs(checkpoint, found, job) if found else {}
    for name, sink in {**job.sinks, **side_outputs}.items():
        _fence(job, name, sink, asked, notify)
    remember_sinks(checkpoint.root, job, asked.accept_gap)
    return job


def _fence(
    job: Job, name: str, sink: SinkConnector, asked: Resumption, notify: Callable[[str], None]
) -> None:
    """Write the generation into one ledger, which also settles what earlier runs left there."""
    claim = job.claim_of(name)
    sink.prepare(name, job.addresses.record_of(name))
    found = sink.check(name, job.query_id, 0) if asked.others != "refuse" else []
    is_anothers = any(problem.code == ANOTHER_CHECKPOINT for problem in found)
    if is_anothers:
        sink.take_over(claim, keep=asked.others == "adopt")
    sink.claim(claim)
    if is_anothers:
        notify(
            f"sink '{name}': {sink.location} belonged to another checkpoint; "
            f"{_TOOK_OVER[asked.others]}"
        )


def _settle(
    checkpoint: Checkpoint,
    job: Job,
    wanted: Identity,
    asked: Resumption,
    notify: Callable[[str], None],
) -> None:
    """Forget the newest epoch if nothing of it was released; else ensure that it can be finished.

    Every sink is claimed by now, so what the ledgers say can no longer change.
    """
    found = checkpoint.identity()
    assert found is not None
    wanted = replace(wanted, partitions=found.partitions)
    if checkpoint.is_mid_epoch():
        released = _refuse_mixture(checkpoint, found, wanted, job, asked)
        if not released:
            if checkpoint.logs_offsets:
                forget_newest(checkpoint)
        else:
            wanted = replace(wanted, sinks=wanted.sinks | found.sinks)
            if found.code != wanted.code:
                epoch = checkpoint.first_unfinished()
                notify(
                    f"epoch {epoch} was begun by another flow and is finished by this one: "
                    f"{mixture(found, released)}; the rest of it, and all states, are this flow's"
                )
    drop_unplanned(checkpoint, found.sources, job.generation)
    checkpoint.save(wanted)


def _refuse_mixture(
    checkpoint: Checkpoint, found: Identity, wanted: Identity, job: Job, asked: Resumption
) -> dict[str, str]:
    """What was released of the newest epoch; refuses a mix of two flows unless that is allowed."""
    epoch = checkpoint.first_unfinished()
    released = released_of(checkpoint, found, job, epoch)
    problems = half_released(found, wanted, epoch, released)
    if problems and not asked.finish_with_this_flow:
        raise RefusedError(problems)
    return released


def _too_late_to(way: str, name: str, sink: SinkConnector, checkpoint: Checkpoint) -> Problem:
    """The output may hold the checkpoint's own rows, which would be deleted or duplicated."""
    epochs = many(checkpoint.next_epoch(), "epoch")
    return Problem(
        ANOTHER_CHECKPOINT,
        f"sink '{name}' goes to {sink.location}, which belongs to another checkpoint; {way} is for "
        f"a new checkpoint, and {checkpoint.root} has {epochs} already",
        "run with the checkpoint that the output belongs to, or bind the sink to an empty location",
    )
