"""Valid initial configurations, and the invariant of all later ones (P1, section 6).

=====================================  =====================================================
P1                                     here
=====================================  =====================================================
Def. 6.8, valid initial configurations ``checked(configuration)`` raises with every problem
Def0 in the proof of Theorem 6.10,     ``ill_formed(configuration)`` says what is wrong, or None:
well-formed                            an invariant of every search
=====================================  =====================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter

from cutwater.errors import FlowError, Problem
from cutwater.semantics.barriers import BARRIER, Configuration, Graph, Message, Running, Task

__all__ = ["checked_configuration", "graph_of", "ill_formed"]


def graph_of(tasks: Iterable[Task]) -> Graph:
    """The graph of tasks, each after those it reads; `FlowError` if they form none."""
    found = tuple(tasks)
    problems = list(_graph_problems(found)) or list(_circles(found))
    if problems:
        raise FlowError(problems)
    named = {task.name: task for task in found}
    return Graph(tuple(named[name] for name in _sorter(found).static_order()))


def _sorter(tasks: Sequence[Task]) -> TopologicalSorter[str]:
    producer = {task.output: task for task in tasks}
    return TopologicalSorter(
        {t.name: [producer[s].name for s in t.inputs if s in producer] for t in tasks}
    )


def _circles(tasks: Sequence[Task]) -> Iterable[Problem]:
    try:
        _sorter(tasks).prepare()
    except CycleError as error:
        circle = " → ".join(error.args[1])
        yield Problem(
            "cyclic-graph",
            f"the tasks {circle} read one another in a cycle; graphs are acyclic here",
            "break the cycle",
        )


def _graph_problems(tasks: Sequence[Task]) -> Iterable[Problem]:
    for kind, names in (
        ("task", [task.name for task in tasks]),
        ("writer of the stream", [task.output for task in tasks]),
    ):
        for name, count in Counter(names).items():
            if count > 1:
                yield Problem(
                    "duplicate-task",
                    f"there are {count} of the {kind} '{name}'; there is one of each",
                    "give each task a name and an output of its own",
                )
    for task in tasks:
        if not task.inputs:
            yield Problem(
                "task-without-input",
                f"the task '{task.name}' reads no stream, so no barrier would ever end its epochs",
                "give it an input",
            )
        if len(set(task.inputs)) < len(task.inputs):
            yield Problem(
                "stream-read-twice",
                f"the task '{task.name}' reads a stream twice: {', '.join(task.inputs)}; "
                "it has one position on each",
                "name each input once",
            )


def checked_configuration(c: Configuration) -> Configuration:
    """The configuration, if it is a valid one to start from; else `FlowError` with all problems."""
    problems = list(_graph_problems(c.graph.tasks)) or list(_circles(c.graph.tasks))
    problems += _initial_problems(c)
    if problems:
        raise FlowError(problems)
    return c


def _initial_problems(c: Configuration) -> Iterable[Problem]:
    streams = {stream for task in c.graph.tasks for stream in task.inputs} - c.graph.produced
    found: dict[str, list[Message]] = {stream: [] for stream in sorted(streams)}
    for message in c.messages:
        found.setdefault(message.stream, []).append(message)
    epochs: dict[str, int] = {}
    for stream, messages in found.items():
        text = _stream_problem(stream, messages)
        if stream in c.graph.produced:
            text = f"the stream '{stream}' has messages at the start; a task writes it"
        if text:
            yield Problem("invalid-input", text, "number messages from 0 and close each epoch")
        epochs[stream] = sum(message.content is BARRIER for message in messages)
    if len(set(epochs.values())) > 1:
        counts = ", ".join(f"'{stream}' has {count}" for stream, count in epochs.items())
        yield Problem(
            "unequal-epochs",
            f"all input streams have the same number of epochs; {counts}",
            "add empty epochs to the shorter ones",
        )
    if c.messages != c.inputs:
        yield Problem(
            "invalid-input",
            "the messages at the start are not the inputs to be replayed (M_0 = M)",
            "start with both the same",
        )
    if any(any(position) for position in c.positions):
        yield Problem("invalid-input", "a task has a position other than 0 at the start", "use 0")
    if any(
        [epoch for epoch, _ in state.archive] != [0]
        or state.volatile != Running(1, state.snapshot(0))
        for state in c.states
    ):
        yield Problem(
            "invalid-state",
            "a task does not start in epoch 1 with a snapshot of epoch 0",
            "start with initial_configuration",
        )


def ill_formed(c: Configuration) -> str | None:
    """What is wrong with a configuration in words; None if it is well-formed."""
    streams: dict[str, list[Message]] = {}
    for message in c.messages:
        streams.setdefault(message.stream, []).append(message)
    for stream, messages in streams.items():
        is_open = stream in c.graph.produced
        text = _stream_problem(stream, messages, is_open=is_open)
        if text:
            return text
    for number, task in enumerate(c.graph.tasks):
        written = c.position(number, task.output)
        if written != len(streams.get(task.output, ())):
            return f"'{task.name}' is at {written} of its output, which has another length"
        for stream in task.inputs:
            text = _reader_problem(c, number, stream, streams.get(stream, []))
            if text:
                return text
    return None


def _stream_problem(stream: str, messages: list[Message], *, is_open: bool = False) -> str | None:
    """Contiguous numbers; epochs 1, 2, …, each closed by a barrier, the last too unless open."""
    epoch = 1
    for n, message in enumerate(sorted(messages, key=lambda m: m.n)):
        if message.n != n:
            return f"the stream '{stream}' has a message {message.n} where {n} is due"
        if message.epoch != epoch:
            return f"message {n} of '{stream}' is of epoch {message.epoch} where {epoch} is due"
        if message.content is BARRIER:
            epoch += 1
    is_closed = not messages or max(messages, key=lambda m: m.n).content is BARRIER
    return None if is_open or is_closed else f"the last epoch of '{stream}' is not closed"


def _reader_problem(
    c: Configuration, number: int, stream: str, messages: list[Message]
) -> str | None:
    """A running task has read all of the epochs before its own, and nothing of later ones."""
    name, position = c.graph.tasks[number].name, c.position(number, stream)
    if position > len(messages):
        return f"'{name}' is at {position} of '{stream}', which has {len(messages)} messages"
    volatile = c.states[number].volatile
    if not isinstance(volatile, Running):
        return None
    for message in messages:
        if message.n < position and message.epoch > volatile.epoch:
            return (
                f"'{name}' in epoch {volatile.epoch} has read epoch {message.epoch} of '{stream}'"
            )
        if message.n >= position and message.epoch < volatile.epoch:
            return (
                f"'{name}' in epoch {volatile.epoch} has not read message {message.n} of '{stream}'"
            )
    return None
