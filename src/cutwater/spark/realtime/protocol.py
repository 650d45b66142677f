"""The protocol of a real-time run, rule by rule; `semantics.protocols.realtime` is its model.

A run cuts its input into *ticks*, P1's epochs at about ten milliseconds. No released row waits
for a snapshot (P2): the rows of a tick are a function of the plan, which is durable before.

====  ============================================================  ==============================
rule  what it says                                                  where
====  ============================================================  ==============================
1     a start replays planned ticks up to R (rule 11) as planned;   `opening.open_generation`,
      new ticks come after K, the  largest in any plan, snapshot    `readers.reader_task`
      or ledger, and K never falls
2     the barrier of a tick is sent when its entry is durable       `plan_log.PlanLog.append`
3     a snapshot counts, and the plan before it may go, when every  `snapshots.Snapshots.common`,
      task has stored it and every bucket has released it             `operator_task.OperatorTask`
                                                                    (release, then store)
4     a sink remembers per bucket how far it is; ticks are atomic     the ledgers of `connectors`
5     all tasks store the same ticks; what is newer than the        `snapshots.Snapshots.common`,
      newest common one is void                                     `TaskSnapshots.drop_after`
6     a generation has folders of its own for plan and snapshots,   `opening.open_generation`
      and claims the sinks; then K is read. A plan that begins
      after the snapshots is not taken over with them
7     the end of a Spark batch is a stop; the next batch starts     `readers`, `operator_task`
      as after a crash. A last barrier goes up to the newest
      planned tick; a reader whose replay the batch cut off
      promises nothing
8     aligned is a frontier over all senders, so that an idle       `alignment.Alignment`,
      reader may skip ticks; readers are a bounded number of        `readers.reader_task`
      ticks ahead of what was released                              (`AHEAD`), `readers.pace`
9     sinks are not atomic with each other                          each sink has its own ledger
10    only the flow that planned a tick replays it, once a sink     `recovery` (the fingerprint of
      has released rows after the snapshot; a replay that has       the flow), `digests.DigestLog`
      other rows than were released stops the run
11    ticks after R, the newest that a sink may have released or    `unreleased`,
      that a snapshot has, are forgotten in all plans at once when  `opening.open_generation`
      a generation opens; their input is planned again
====  ============================================================  ==============================
"""

from __future__ import annotations

__all__ = ["AHEAD", "IDLE_BARRIER_TICKS", "LONGEST_TICK_S", "TICK_S"]

TICK_S = 0.010
"""How long a tick is while sinks keep up; numbers of ticks are the clock in this unit."""
LONGEST_TICK_S = 0.160
"""How long a tick becomes under load."""
AHEAD = 4
"""How many ticks with records a reader may have in flight, not yet released by all sinks."""
IDLE_BARRIER_TICKS = 20
"""An idle reader sends a barrier every this many ticks, even if no task waits for it."""
