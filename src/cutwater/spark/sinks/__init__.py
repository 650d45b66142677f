"""Sinks: where what a flow emits goes, and what each of them promises."""

from cutwater.spark.sinks.call import Call
from cutwater.spark.sinks.delta import Delta
from cutwater.spark.sinks.folder import Folder
from cutwater.spark.sinks.sink import Claim, Guarantee, Lane, Receipt, Sink

__all__ = ["Call", "Claim", "Delta", "Folder", "Guarantee", "Lane", "Receipt", "Sink"]
