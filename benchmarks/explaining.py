"""How long it takes to explain a run of a million steps, and how that grows with its length.

    python benchmarks/explaining.py [--steps 1000000]

A run of three tasks one after the other, with a crash now and then, is made, written, read
back, and explained: the failure-free run is constructed, and both runs are replayed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from cutwater.checking import explain
from cutwater.trace import (
    Header,
    TaskShape,
    Trace,
    TraceMessage,
    TraceStep,
    read_trace,
    write_trace,
)

EVENTS = 50
"""Events in an epoch."""
TASKS = ("first", "second", "third")


def run_of(length: int, seed: int = 0) -> Trace:
    """A run with at least so many steps; about one epoch in three is crashed once."""
    drawn = random.Random(seed)
    steps: list[TraceStep] = []
    sums = dict.fromkeys(TASKS, 0)
    ends = dict.fromkeys(("numbers", *TASKS), 0)
    epoch = 0
    while len(steps) < length:
        epoch += 1
        if drawn.random() < 1 / 3:
            attempt = list(epoch_of(epoch, dict(sums), dict(ends)))
            steps += attempt[: drawn.randrange(len(attempt) - 1)]
            failed = drawn.choice(TASKS)
            at = epoch + any(
                s.task == failed and s.rule == "barrier" and s.epoch == epoch
                for s in steps[-len(attempt) :]
            )
            steps += [TraceStep("fail", failed, at), TraceStep("recover", None, epoch - 1)]
        steps += epoch_of(epoch, sums, ends)
    words = tuple((tuple(range(EVENTS))) for _ in range(epoch))
    streams = ("numbers", *TASKS)
    shapes = tuple(
        TaskShape(name, (before,), name, 0) for before, name in zip(streams, TASKS, strict=False)
    )
    return Trace(Header("sums", shapes, {"numbers": words}), tuple(steps))


def epoch_of(epoch: int, sums: dict[str, int], ends: dict[str, int]) -> Iterator[TraceStep]:
    """The steps of an epoch without failures; sums and ends are those before it, and change."""
    messages = [TraceMessage("numbers", ends["numbers"] + i, epoch, event=i) for i in range(EVENTS)]
    barrier = TraceMessage("numbers", ends["numbers"] + EVENTS, epoch, barrier=True)
    ends["numbers"] += EVENTS + 1
    for name in TASKS:
        produced = []
        for message in messages:
            sums[name] += message.event
            sent = TraceMessage(name, ends[name], epoch, event=sums[name])
            ends[name] += 1
            produced.append(sent)
            yield TraceStep("event", name, epoch, (message,), (sent,))
        passed = TraceMessage(name, ends[name], epoch, barrier=True)
        ends[name] += 1
        yield TraceStep("barrier", name, epoch, (barrier,), (passed,))
        messages, barrier = produced, passed


def timed(length: int) -> dict[str, float]:
    """Seconds to write, read and explain a run."""
    trace = run_of(length)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        start = time.perf_counter()
        write_trace(trace, path)
        written = time.perf_counter()
        again = read_trace(path)
        read = time.perf_counter()
    explanation = explain(again)
    done = time.perf_counter()
    if not explanation.holds:
        sys.exit(f"not explained: {explanation.refusal}")
    return {
        "steps": len(trace.steps),
        "generations": len(explanation.generations),
        "kept": len(explanation.kept),
        "write_s": written - start,
        "read_s": read - written,
        "explain_s": done - read,
    }


def main() -> None:
    """Print the figures for three lengths."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true", help="print the figures as data")
    arguments = parser.parse_args()
    results = [timed(arguments.steps // share) for share in (10, 2, 1)]
    if arguments.json:
        print(json.dumps(results, indent=2))
        return
    for result in results:
        per_step = result["explain_s"] / result["steps"] * 1e6
        print(
            f"{result['steps']:>9,} steps, {result['generations']:>6,} generations: "
            f"write {result['write_s']:.1f} s, read {result['read_s']:.1f} s, "
            f"explain {result['explain_s']:.1f} s ({per_step:.1f} µs a step)"
        )


if __name__ == "__main__":
    main()
