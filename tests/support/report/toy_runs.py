"""Small runs with failures, and everything as it was in each of their configurations.

The rules are those of P1, section 4.2, once more and in the plainest way, so that what a report
tells can be compared with what was.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count as count_from
from typing import Any

from cutwater.checking import Explanation, explain
from cutwater.trace import Header, TaskShape, Trace, TraceMessage, TraceStep

Function = Callable[[Any, Any], tuple[Any, list[Any]]]


@dataclass
class ToyTask:
    """A task, where it is, and what it has saved."""

    shape: TaskShape
    function: Function
    state: Any = None
    epoch: int = 1
    is_failed: bool = False
    archive: dict[int, Any] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)

    def __post_init__(self):
        self.state = self.shape.initial
        self.archive = {0: self.state}
        self.read = dict.fromkeys(self.shape.inputs, 0)


class ToyRun:
    """A run that is scheduled step by step."""

    is_watched = True
    """Is every configuration recorded?"""

    def __init__(self, flow: str, tasks: list[ToyTask], inputs: dict[str, tuple]):
        self.tasks = {task.shape.name: task for task in tasks}
        outputs = [task.shape.output for task in tasks]
        sinks = {"out": tuple(outputs[-1:])}
        self.header = Header(flow, tuple(task.shape for task in tasks), inputs, sinks)
        self.streams: dict[str, list[TraceMessage]] = {
            **{name: list(messages(name, epochs)) for name, epochs in inputs.items()},
            **{name: [] for name in outputs},
        }
        self.steps: list[TraceStep] = []
        self.configurations = [self.configuration()]

    @property
    def common(self) -> int:
        return min((max(task.archive) for task in self.tasks.values()), default=0)

    def configuration(self) -> dict[str, Any]:
        """Everything as it is now."""
        return {
            "states": [None if t.is_failed else t.state for t in self.tasks.values()],
            "epochs": [None if t.is_failed else t.epoch for t in self.tasks.values()],
            "archives": [dict(task.archive) for task in self.tasks.values()],
            "reads": [list(task.read.values()) for task in self.tasks.values()],
            "streams": [list(stream) for stream in self.streams.values()],
            "common": self.common,
        }

    def _add(self, step: TraceStep) -> None:
        self.steps.append(step)
        if self.is_watched:
            self.configurations.append(self.configuration())

    def ready(self) -> list[tuple[str, str | None]]:
        """What can be done: a task and the stream it takes an event from, or None for barriers."""
        return [choice for task in self.tasks.values() for choice in self._choices(task)]

    def _choices(self, task: ToyTask) -> Iterable[tuple[str, str | None]]:
        heads = {stream: self._head(task, stream) for stream in task.shape.inputs}
        if task.is_failed:
            return
        for stream, head in heads.items():
            if head and not head.barrier:
                yield task.shape.name, stream
        if all(head and head.barrier for head in heads.values()):
            yield task.shape.name, None

    def _head(self, task: ToyTask, stream: str) -> TraceMessage | None:
        place = task.read[stream]
        return self.streams[stream][place] if place < len(self.streams[stream]) else None

    def take(self, name: str, stream: str | None) -> None:
        task = self.tasks[name]
        streams = task.shape.inputs if stream is None else (stream,)
        consumed = tuple(self._head(task, one) for one in streams)
        for one in streams:
            task.read[one] += 1
        if stream is None:
            sent = [self._send(task, barrier=True)]
        else:
            task.state, events = task.function(task.state, consumed[0].event)
            sent = [self._send(task, event=event) for event in events]
        rule, epoch = "barrier" if stream is None else "event", task.epoch
        if stream is None:
            task.archive[epoch] = task.state
            task.epoch += 1
        self._add(TraceStep(rule, name, epoch, consumed, tuple(sent), state=task.state))

    def _send(self, task: ToyTask, **content: Any) -> TraceMessage:
        stream = self.streams[task.shape.output]
        message = TraceMessage(task.shape.output, len(stream), task.epoch, **content)
        stream.append(message)
        return message

    def fail(self, name: str) -> None:
        self.tasks[name].is_failed = True
        self._add(TraceStep("fail", name, self.tasks[name].epoch))

    def recover(self) -> None:
        common = self.common
        for name, stream in self.streams.items():
            if name not in self.header.inputs:
                stream[:] = [message for message in stream if message.epoch <= common]
        for task in self.tasks.values():
            task.archive = {e: v for e, v in task.archive.items() if e <= common}
            task.state, task.epoch, task.is_failed = task.archive[common], common + 1, False
            for name in task.read:
                task.read[name] = sum(m.epoch <= common for m in self.streams[name])
        self._add(TraceStep("recover", None, common))

    def play(self, seed: int, fails: Iterable[tuple[int, str]] = ()) -> "ToyRun":
        """Run to the end; each failure comes at its step, and a recovery three steps later."""
        chance, due, recovery = random.Random(seed), sorted(fails), None
        while True:
            ready = self.ready()
            if due and due[0][0] <= len(self.steps) and not self.tasks[due[0][1]].is_failed:
                self.fail(due.pop(0)[1])
                recovery = recovery or len(self.steps) + 3
            elif recovery and (len(self.steps) >= recovery or not ready):
                self.recover()
                recovery = None
            elif ready:
                self.take(*chance.choice(ready))
            else:
                return self

    def explained(self) -> Explanation:
        return explain(Trace(self.header, tuple(self.steps)))


def messages(stream: str, epochs: Iterable[Iterable[Any]]) -> Iterable[TraceMessage]:
    """The messages of an input: epochs from 1 on, each ended by a barrier."""
    n = 0
    for epoch, events in enumerate(epochs, 1):
        for event in events:
            yield TraceMessage(stream, n, epoch, event)
            n += 1
        yield TraceMessage(stream, n, epoch, barrier=True)
        n += 1


def split(state: int, line: str) -> tuple[int, list[str]]:
    return state + 1, line.split()


def count(state: dict[str, int], word: str) -> tuple[dict[str, int], list[Any]]:
    new = {**state, word: state.get(word, 0) + 1}
    return new, [[word, new[word]]]


def number(calls: Iterator[int]) -> Function:
    """A function that is none: it numbers its calls, and a recovery does not take these back."""

    def call(state: int, word: str) -> tuple[int, list[Any]]:
        return state + 1, [[word, next(calls)]]

    return call


def average(state: list[int], event: Any) -> tuple[list[int], list[Any]]:
    if event == "reset":
        return [0, 0], []
    total, number = state[0] + event, state[1] + 1
    return [total, number], [total / number]


WORDS = (("to be", "or not"), ("to be", "that is"), ("the question",))


def word_count(epochs: Iterable[Iterable[str]] = WORDS) -> ToyRun:
    """Lines to words to counts, two tasks in a row."""
    tasks = [
        ToyTask(TaskShape("split", ("lines",), "words", 0), split),
        ToyTask(TaskShape("count", ("words",), "counts", {}), count),
    ]
    return ToyRun("word-count", tasks, {"lines": tuple(tuple(epoch) for epoch in epochs)})


def averages(epochs: int = 3) -> ToyRun:
    """The paper's running example (Fig. 2): an average that a second stream resets."""
    task = ToyTask(TaskShape("average", ("ints", "resets"), "means", [0, 0]), average)
    ints = tuple((3 * epoch + 1, 3 * epoch + 4) for epoch in range(epochs))
    resets = tuple(("reset",) if epoch % 2 else () for epoch in range(epochs))
    return ToyRun("incremental-average", [task], {"ints": ints, "resets": resets})


def impure_run() -> Explanation:
    """A run that nothing explains: after a recovery a task does something else."""
    run = word_count()
    run.tasks["count"].function = number(count_from(1))
    run.tasks["count"].state = run.tasks["count"].archive[0] = 0
    return run.play(0, [(9, "count"), (22, "split")]).explained()


def long_run(steps: int, crash_every: int = 150) -> Explanation:
    """A word count of at least so many steps, with many failures."""
    run = word_count((f"a{i % 7} b{i % 5}", f"c{i % 3}") for i in range(-(-steps // 7)))
    run.is_watched = False
    fails = [(at, ("split", "count")[at % 2]) for at in range(67, steps, crash_every)]
    return run.play(3, fails).explained()


def shown_run() -> Explanation:
    """The run that is looked at: two crashes in a word count."""
    return word_count().play(0, [(9, "count"), (22, "split")]).explained()
