"""Sinks: where what a flow emits goes, and what each of them promises."""

from cutwater.spark.sinks.folder import Folder
from cutwater.spark.sinks.sink import Claim, Guarantee, Lane, Receipt, Sink

__all__ = ["Claim", "Folder", "Guarantee", "Lane", "Receipt", "Sink"]
