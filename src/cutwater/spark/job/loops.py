"""The loops of a job that feed back through a log: what lies in them, and what passes them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from cutwater.flow.fusing import Plan, Segment
from cutwater.flow.steps import FromLog, ToLog
from cutwater.spark.exchange.envelope import InputEpochs
from cutwater.spark.job.addresses import Addresses
from cutwater.spark.job.column_requirements import ColumnRequirements

__all__ = ["Loops"]


@dataclass(frozen=True)
class Loops:
    """The loops of a plan that are cut at a log; a job often has none."""

    plan: Plan
    requirements: ColumnRequirements
    addresses: Addresses

    @cached_property
    def logs(self) -> tuple[FromLog, ...]:
        """The logs of a loop: of feedback, and of results; empty if none is cut."""
        return tuple(step for step in self.plan.flow.steps if isinstance(step, FromLog))

    def log_into(self, sink: str) -> ToLog | None:
        """The step that writes the log of a loop, if the sink is one."""
        steps = (step for step, _ in self.plan.sinks if step.name == sink)
        return next((step for step in steps if isinstance(step, ToLog)), None)

    def side_of(self, segment: Segment) -> Literal["before", "inside", "behind"]:
        """The position of a segment relative to a loop; before it if there is none."""
        leading = self.requirements.sources[segment.number]
        found = {log.is_again for log in self.logs if log.name in leading}
        return "before" if not found else "inside" if True in found else "behind"

    @cached_property
    def inside(self) -> frozenset[int]:
        """The segments in a loop, and the numbers of its logs among the sinks."""
        segments = (s.number for s in self.plan.segments if self.side_of(s) == "inside")
        into_logs = (name for name in self.addresses.sink_names if self.log_into(name))
        return frozenset([*segments, *map(self.addresses.target_of_sink, into_logs)])

    @cached_property
    def overlaps(self) -> bool:
        """May several input epochs overlap in a loop?"""
        return any(log.overlaps for log in self.logs)

    @cached_property
    def keeps_states_per_input(self) -> frozenset[int]:
        """The segments that keep states for each input epoch, and so none in a table."""
        return self.inside if self.overlaps else frozenset()

    def input_epochs(self, current: int) -> InputEpochs | None:
        """The input epochs that rows carry, if a loop is cut."""
        return InputEpochs(current, self.inside) if self.logs else None
