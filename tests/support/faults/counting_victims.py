"""Runs of the counting flow that write to one of our own sinks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support.faults.pairs import Pair
from support.faults.victims import with_tests

import cutwater.spark
from cutwater.spark.connectors.base.sink import SinkConnector
from cutwater.testing.connectors.killed_run import KilledRun


class CountingVictim(KilledRun):
    """A run that writes to a pair of sink and release, with a step of the user's own code."""

    def __init__(self, folder: Path, pair: Pair, **settings: Any) -> None:
        sink = bound(pair.binding)
        super().__init__(folder, sink, pair.observer.rows, pair.has_order, **settings)
        self.flow = "support.faults.own_flow:flow_to"
        self.pair = pair

    def start(self, until="stopped", trap=None, environment=None, before: Sequence[str] = ()):
        variables = {**with_tests(), **(environment or {})}
        return super().start(until, trap, variables, before)

    def check_whole(self) -> None:
        self.pair.settle()
        super().check_whole()


def bound(binding: Mapping[str, Any]) -> SinkConnector:
    """A sink by the name of a function of `cutwater.spark` and what it takes."""
    made = getattr(cutwater.spark, binding["kind"])
    return made(**{name: value for name, value in binding.items() if name != "kind"})
