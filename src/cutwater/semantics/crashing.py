"""Runs a flow in its total order by P1's rules, with crashes where its input asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cutwater.errors import InputError, Problem
from cutwater.events import Data
from cutwater.flow.fusing import Plan, Segment
from cutwater.flow.steps import Source
from cutwater.semantics.barrier_model import Barriers, Fail, Move, Recover, TakeBarrier, TakeEvent
from cutwater.semantics.barriers import FAILED, Configuration, EventContent, Running
from cutwater.semantics.flow_tasks import End, FlowTasks, Sent, shown_payload
from cutwater.semantics.inputs import Crash, epochs_of, split
from cutwater.semantics.recording import Recorder
from cutwater.semantics.segments import Row, last_row
from cutwater.semantics.snapshots import OnLoss, refuse
from cutwater.trace import Trace

__all__ = ["CrashingRun", "run_with_crashes"]


@dataclass(frozen=True)
class CrashingRun:
    """The result of a run by P1's rules."""

    epochs: int
    rows: dict[str, list[list[Row]]]
    """For each sink and epoch, the rows an observer sees in the end."""
    late: dict[str, int]
    late_events: dict[str, list[Any]]
    trace: Trace


def run_with_crashes(
    plan: Plan,
    inputs: Mapping[str, Iterable[Any]],
    *,
    epoch_size: int | None = None,
    instances: int = 1,
    version: str = "",
    on_loss: OnLoss = refuse,
) -> CrashingRun:
    """Run a flow, each epoch in its total order, and crash where the input says so.

    `on_loss` is called for a value that does not survive a snapshot or an exchange unchanged.
    """
    plain, crashes = split(inputs, epoch_size)
    sources = [segment.source for segment in plan.segments if segment.source]
    cut = epochs_of(sources, plain, epoch_size)
    tasks = FlowTasks(plan, instances=instances, in_order=True, on_loss=on_loss)
    payloads, readers = tasks.read(cut)
    initial = tasks.initial(payloads)
    recorder = Recorder(
        initial,
        plan.flow.name,
        sinks=tasks.sinks,
        show=shown_payload,
        show_value=lambda value: value.shown(),
        version=version,
    )
    due = _positions(tasks, crashes, payloads)
    final = _Scheduler(tasks, initial, due, recorder).run()
    late = {name: reader.late for name, reader in readers.items()}
    epochs = len(cut) + 1
    shown = {
        sink.name: _shown(final, plan.segments[number], tasks.outputs(number), epochs)
        for sink, number in plan.sinks
    }
    kept = {name: reader.late_events for name, reader in readers.items()}
    return CrashingRun(epochs, shown, late, kept, recorder.trace())


def _positions(
    tasks: FlowTasks,
    crashes: Mapping[str, Sequence[tuple[int, int, Crash]]],
    payloads: Mapping[str, Sequence[Sequence[Any]]],
) -> dict[tuple[str, int], list[Crash]]:
    """For each position on a source stream, the crashes due before it is read."""
    due: dict[tuple[str, int], list[Crash]] = {}
    for name, marks in crashes.items():
        if name not in payloads:
            continue
        for epoch, index, crash in marks:
            _check_step(tasks, crash)
            epoch = min(epoch, len(payloads[name]) - 1)
            position = sum(len(rows) + 1 for rows in payloads[name][:epoch])  # and their barriers
            position += sum(
                isinstance(payload, Sent) and payload.row.order[-1] < index  # type: ignore[operator]
                for payload in payloads[name][epoch]
            )
            due.setdefault((name, position), []).append(crash)
    return due


def _check_step(tasks: FlowTasks, crash: Crash) -> None:
    if crash.step is not None and not tasks.tasks_of(crash.step):
        steps = [step for one in tasks.instances.values() for step in one.segment.steps]
        names = ", ".join(dict.fromkeys(s.name for s in steps if not isinstance(s, Source)))
        raise InputError(
            Problem(
                "unknown-step",
                f"an input has {crash!r}; no step has that name",
                f"these do: {names}" if names else "use CRASH",
            )
        )


class _Scheduler:
    """Takes the steps of a run in the total order of each epoch."""

    def __init__(
        self,
        tasks: FlowTasks,
        initial: Configuration,
        due: dict[tuple[str, int], list[Crash]],
        recorder: Recorder,
    ) -> None:
        self.tasks, self.here, self.due, self.recorder = tasks, initial, due, recorder
        self.protocol = Barriers()

    def run(self) -> Configuration:
        while (move := self._next()) is not None:
            crashes = self._crashes_before(move)
            for crash in crashes:
                self._crash(crash)
            if not crashes:
                self._take(move)
        return self.here

    def _next(self) -> Move | None:
        """The next move: the oldest epoch first, and in it the task furthest from the sources."""
        best: tuple[int, int, Move] | None = None
        for number, task in enumerate(self.here.graph.tasks):
            volatile = self.here.states[number].volatile
            assert isinstance(volatile, Running)
            rank = (volatile.epoch, -number)
            if best is not None and best[:2] < rank:
                continue
            move = self._move_of(task.name, volatile.epoch)
            if move is not None:
                best = (*rank, move)
        return best[2] if best else None

    def _move_of(self, task: str, epoch: int) -> Move | None:
        number = self.here.graph.number[task]
        moves = self.protocol.moves(self.here, number)
        if not moves:
            return None
        if isinstance(moves[-1], TakeBarrier):
            return moves[-1]
        message = self.tasks.next_input(self.here, task)
        return None if message is None else TakeEvent(task, message)

    def _crashes_before(self, move: Move) -> list[Crash]:
        if not isinstance(move, TakeEvent):
            return []
        return self.due.pop((move.message.stream, move.message.n), [])

    def _crash(self, crash: Crash) -> None:
        names = self.tasks.tasks_of(crash.step) if crash.step else list(self.tasks.instances)
        for name in names:
            if self.here.states[self.here.graph.number[name]].volatile is not FAILED:
                self._take(Fail(name))
        if names:
            self._take(Recover())

    def _take(self, move: Move) -> None:
        there = self.protocol.step(self.here, move)
        self.recorder.add(self.here, move, there)
        self.here = there


def _shown(
    final: Configuration, segment: Segment, streams: Sequence[str], epochs: int
) -> list[list[Row]]:
    """A sink's rows in each epoch; watermarks, which all instances emit, only of the first."""
    rows: list[list[Row]] = [[] for _ in range(epochs)]
    for stream in streams:
        for message in sorted(final.messages.on(stream), key=lambda message: message.n):
            if isinstance(message.content, EventContent):
                rows[message.epoch - 1] += [
                    row
                    for row in _rows(segment, message.content.payload.thaw())
                    if stream == streams[0] or isinstance(row.event, Data)
                ]
    return rows


def _rows(segment: Segment, payload: Sent | End) -> list[Row]:
    if isinstance(payload, Sent):
        return [payload.row]
    return [last_row(segment, time) for time in payload.times]
