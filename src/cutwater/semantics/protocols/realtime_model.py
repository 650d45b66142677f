"""Executions of the real-time protocol, as a `Model`, and what an observer may see of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product

import msgspec
from msgspec.structs import replace

from cutwater.semantics.protocols.realtime import RealTime
from cutwater.semantics.protocols.realtime_world import (
    BucketSnapshots,
    Entry,
    PartitionPlan,
    RealTimeCase,
    RealTimeRun,
    RealTimeWorld,
    SinkPartition,
    TickRow,
    with_run,
    without_run,
)

__all__ = ["RealTimeModel", "RealTimeMove", "is_all_shown", "shows_one_run"]

_Shown = tuple[tuple[TickRow, ...], ...]


class RealTimeMove(msgspec.Struct, frozen=True):
    """A step, by the name of its rule."""

    rule: str
    run: int
    """Index of the run among those that may act."""
    numbers: tuple[int, ...] = ()
    """Source partition or bucket."""
    who: str = ""
    """Run or zombie, by its generation; or the source."""
    words: str = ""
    """What it does."""

    def __str__(self) -> str:
        return f"{self.who} {self.words}"


class RealTimeModel:
    """All executions of a case.

    Examples
    --------
    >>> model = RealTimeModel(RealTime(RealTimeCase(records=(1,), crashes=0)))
    >>> (world,) = model.initial_states()
    >>> [str(move) for move in model.actions(world)]
    ['source partition 0 gets record 0', 'run 1 starts']
    """

    def __init__(self, protocol: RealTime) -> None:
        self.protocol, self.case = protocol, protocol.case
        self._last: tuple[RealTimeWorld | None, dict[RealTimeMove, RealTimeWorld]] = (None, {})

    def initial_states(self) -> Iterable[RealTimeWorld]:
        """No record, nothing durable, no run."""
        case = self.case
        none = (0,) * len(case.records)
        return (
            RealTimeWorld(
                arrived=none,
                plans=(PartitionPlan(),) * len(case.records),
                snapshots=(BucketSnapshots(),) * case.buckets,
                sinks=(SinkPartition(),) * case.buckets,
                base=0,
                positions=none,
                generation=0,
                opened=0,
                code="a",
                is_stopped=False,
                runs=(),
                crashes=case.crashes,
                zombies=case.zombies,
                idles=case.idles,
                batches=case.batches,
                changes=case.changes,
            ),
        )

    def actions(self, state: RealTimeWorld) -> list[RealTimeMove]:
        """What may happen: records arrive, runs take steps, runs start; then what goes wrong."""
        return list(self._successors(state))

    def step(self, state: RealTimeWorld, action: RealTimeMove) -> RealTimeWorld:
        """The world after a step."""
        return self._successors(state)[action]

    def observation(self, state: RealTimeWorld) -> _Shown:
        """What readers see: for each sink partition its rows, in order."""
        return tuple(sink.shown for sink in state.sinks)

    def is_at_rest(self, state: RealTimeWorld) -> bool:
        """Can nothing happen any more but what goes wrong?"""
        return all(move.rule in _FAULTS for move in self.actions(state))

    def _successors(self, state: RealTimeWorld) -> dict[RealTimeMove, RealTimeWorld]:
        if self._last[0] is not state:
            hurried = self._starting(state) if self.case.is_start_hurried else []
            if hurried:
                self._last = (state, dict(hurried))
                return self._last[1]
            moves = [*self._arrivals(state), *self._progress(state), *self._starts(state)]
            self._last = (state, dict([*moves, *self._faults(state)]))
        return self._last[1]

    def _starting(self, w: RealTimeWorld) -> list[tuple[RealTimeMove, RealTimeWorld]]:
        """The steps of a start that is under way."""
        steps = len(self.protocol.order_of_a_start())
        return [found for found in self._progress(w) if w.runs[found[0].run].begun < steps]

    def _arrivals(self, w: RealTimeWorld) -> Iterator[tuple[RealTimeMove, RealTimeWorld]]:
        for number, (arrived, all_there_are) in enumerate(
            zip(w.arrived, self.case.records, strict=True)
        ):
            if arrived < all_there_are:
                more = (*w.arrived[:number], arrived + 1, *w.arrived[number + 1 :])
                who, words = f"source partition {number}", f"gets record {arrived}"
                yield RealTimeMove("arrive", -1, (number,), who, words), replace(w, arrived=more)

    def _progress(self, w: RealTimeWorld) -> Iterator[tuple[RealTimeMove, RealTimeWorld]]:
        for at, run in enumerate(w.runs):
            who = f"{'zombie' if run.is_zombie else 'run'} {_name(run, w)}"
            for rule, choices, words in self._rules(w, run):
                for numbers in choices:
                    after = rule(w, at, *numbers)
                    if after is None or after == w:
                        continue
                    message = words.format(*numbers, *[""] * 2)
                    if rule.__name__ in _DESCRIPTIONS:
                        message = _DESCRIPTIONS[rule.__name__](w, after, at, numbers)
                    yield RealTimeMove(rule.__name__, at, numbers, who, message), after

    def _rules(
        self, w: RealTimeWorld, run: RealTimeRun
    ) -> list[tuple[Callable[..., RealTimeWorld | None], Iterable[tuple[int, ...]], str]]:
        p = self.protocol
        readers = [(number,) for number in range(len(w.plans))]
        buckets = [(number,) for number in range(self.case.buckets)]
        ahead = list(product(range(len(w.plans)), (0, 1) if w.idles else (0,)))
        order = [*p.order_of_a_start(), ""]
        return [
            (p.take_generation, [()], "takes its generation"),
            (p.fence, [()], order[run.begun].replace("fence", "fences")),
            (p.read, [()], "reads K"),
            (p.open_ticks, [()], ""),
            (p.replay, readers, ""),
            (p.cut, readers, ""),
            (p.idle, ahead, ""),
            (p.append_entry, readers, ""),
            (p.send, readers, ""),
            (p.promise, readers, ""),
            (p.work, buckets, ""),
            (p.release, buckets, ""),
            (p.store, buckets, ""),
            (p.complete, [()], ""),
            (p.close, [()], "closes"),
        ]

    def _starts(self, w: RealTimeWorld) -> Iterator[tuple[RealTimeMove, RealTimeWorld]]:
        if w.is_stopped or any(not run.is_zombie for run in w.runs):
            return
        other = "b" if w.code == "a" else "a"
        who, at = f"run {w.generation + 1}", len(w.runs)
        starts = [("starts", w.code, 0), ("starts, other code", other, 1)]
        for words, code, cost in starts[: 1 + bool(w.changes)]:
            runs = (*w.runs, RealTimeRun(0, code))
            after = replace(w, runs=runs, changes=w.changes - cost)
            yield RealTimeMove("start", at, (), who, words), after

    def _faults(self, w: RealTimeWorld) -> Iterator[tuple[RealTimeMove, RealTimeWorld]]:
        for at, run in enumerate(w.runs):
            who = f"run {_name(run, w)}"
            if run.is_zombie:
                continue
            if w.crashes:
                gone = replace(without_run(w, at), crashes=w.crashes - 1)
                yield RealTimeMove("crash", at, (), who, "is killed"), gone
            if w.zombies and run.generation:
                after = with_run(w, at, replace(run, is_zombie=True))
                after = replace(after, zombies=w.zombies - 1)
                yield RealTimeMove("lose", at, (), who, "is presumed dead"), after
            if w.batches and run.buckets and not run.is_ending:
                after = with_run(w, at, replace(run, is_ending=True))
                after = replace(after, batches=w.batches - 1)
                yield RealTimeMove("end", at, (), who, "is at the end of its batch"), after


_FAULTS = frozenset({"crash", "lose", "end"})

_Description = Callable[[RealTimeWorld, RealTimeWorld, int, tuple[int, ...]], str]


def _cut(w: RealTimeWorld, after: RealTimeWorld, at: int, numbers: tuple[int, ...]) -> str:
    entry = after.runs[at].readers[numbers[0]].unwritten
    assert entry is not None
    records = " and ".join(str(position) for position in range(entry.start, entry.end))
    return f"reader {numbers[0]} cuts tick {entry.tick} with record {records}"


def _idle(w: RealTimeWorld, after: RealTimeWorld, at: int, numbers: tuple[int, ...]) -> str:
    return f"reader {numbers[0]} is idle up to tick {after.runs[at].readers[numbers[0]].tick}"


def _append(w: RealTimeWorld, after: RealTimeWorld, at: int, numbers: tuple[int, ...]) -> str:
    entry = w.runs[at].readers[numbers[0]].unwritten
    return f"reader {numbers[0]} writes entry {entry.tick if entry else ''}"


def _send(w: RealTimeWorld, after: RealTimeWorld, at: int, numbers: tuple[int, ...]) -> str:
    return f"reader {numbers[0]} sends barrier {after.runs[at].readers[numbers[0]].barriers[-1]}"


def _replay(w: RealTimeWorld, after: RealTimeWorld, at: int, numbers: tuple[int, ...]) -> str:
    return f"reader {numbers[0]} replays tick {w.runs[at].readers[numbers[0]].unsent[0].tick}"


def _promise(w: RealTimeWorld, after: RealTimeWorld, at: int, numbers: tuple[int, ...]) -> str:
    return f"reader {numbers[0]} ends with {_send(w, after, at, numbers).partition('sends ')[2]}"


def _work(w: RealTimeWorld, after: RealTimeWorld, at: int, numbers: tuple[int, ...]) -> str:
    return f"bucket {numbers[0]} works on tick {after.runs[at].buckets[numbers[0]].worked}"


def _release(w: RealTimeWorld, after: RealTimeWorld, at: int, numbers: tuple[int, ...]) -> str:
    (number,) = numbers
    tick = w.runs[at].buckets[number].pending[0][0]
    if after.is_stopped:
        return f"bucket {number} finds another digest of tick {tick}, and the run stops"
    is_dropped = after.sinks == w.sinks
    return f"bucket {number} {'drops' if is_dropped else 'releases'} tick {tick}"


def _store(w: RealTimeWorld, after: RealTimeWorld, at: int, numbers: tuple[int, ...]) -> str:
    return f"bucket {numbers[0]} stores tick {w.runs[at].buckets[numbers[0]].worked}"


def _complete(w: RealTimeWorld, after: RealTimeWorld, at: int, numbers: tuple[int, ...]) -> str:
    return f"records that snapshot {after.base} counts, and truncates the plan"


def _read(w: RealTimeWorld, after: RealTimeWorld, at: int, numbers: tuple[int, ...]) -> str:
    if len(after.runs) < len(w.runs):
        return "is refused: other code has to replay these ticks"
    run = after.runs[at]
    return f"reads K = {run.newest} and R = {run.released}, restores tick {run.base}"


def _open(w: RealTimeWorld, after: RealTimeWorld, at: int, numbers: tuple[int, ...]) -> str:
    kept = set(_entries(after))
    gone = sorted({str(entry.tick) for entry in _entries(w) if entry not in kept})
    return f"opens after K{' without tick ' if gone else ''}{' and '.join(gone)}"


_DESCRIPTIONS: dict[str, _Description] = {
    "replay": _replay,
    "cut": _cut,
    "idle": _idle,
    "append_entry": _append,
    "send": _send,
    "promise": _promise,
    "work": _work,
    "release": _release,
    "store": _store,
    "complete": _complete,
    "read": _read,
    "open_ticks": _open,
}


def shows_one_run(case: RealTimeCase) -> Callable[[_Shown], bool]:
    """Rule 9: is there one run without failures of which each sink partition shows a prefix?

    In that run every record of a source partition comes once and in order, and every tick was
    worked on the state that the ticks before it left. The observer of ``"equal prefixes"`` asks
    for more: that all partitions show the same ticks.
    """

    def holds(shown: _Shown) -> bool:
        longest = max(shown, key=len)
        if any(rows != longest[: len(rows)] for rows in shown):
            return False
        if case.observer == "equal prefixes" and len(set(map(len, shown))) > 1:
            return False
        state: tuple[object, ...] = ()
        for row in longest:
            if row.before != state:
                return False
            state = (*state, *((record, row.code) for record in row.records))
        records = [record for row in longest for record in row.records]
        return all(_in_order(records, number) for number in range(len(case.records)))

    return holds


def _in_order(records: list[tuple[int, int]], number: int) -> bool:
    """Do the records of a source partition come once each, in order?"""
    positions = [position for partition, position in records if partition == number]
    return positions == list(range(len(positions)))


def is_all_shown(model: RealTimeModel) -> Callable[[RealTimeWorld], bool]:
    """Once nothing more can happen: is every record shown, and does the last snapshot count?

    If it does not, no batch can close and no plan can go. Code that is not deterministic may be
    stopped by a digest instead; any other flow may not.
    """

    def holds(w: RealTimeWorld) -> bool:
        wanted = sum(model.case.records)
        shown = {sum(len(row.records) for row in sink.shown) for sink in w.sinks}
        last = max(entry.tick for entry in (*_entries(w), Entry(0, 0, 0)))
        is_done = shown == {wanted} and last <= w.base
        is_stopped = w.is_stopped and not model.case.is_pure
        return is_done or is_stopped or not model.is_at_rest(w)

    return holds


def _entries(w: RealTimeWorld) -> Iterator[Entry]:
    return (entry for plan in w.plans for entry in plan.entries)


def _name(run: RealTimeRun, w: RealTimeWorld) -> int:
    return run.generation or w.generation + 1
