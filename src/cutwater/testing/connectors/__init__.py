"""A conformance kit for connectors: the laws that ours keep, and the kills they survive, for yours.

Subclass `SinkLaws` or `SourceLaws` in a test module of pytest, create the connector and read it as
a reader does; then do the same with `KilledSink` or `KilledSource`, which run it on embedded Spark,
in processes that are killed (`docs/connectors.md`). Imports the contract of connectors and the
runtime. Begin with `sink_laws`.
"""

from cutwater.extras import not_installed as _not_installed

try:
    from cutwater.testing.connectors.counting import Click, Counted, click, expected
    from cutwater.testing.connectors.kills import KilledSink, KilledSource
    from cutwater.testing.connectors.sink_laws import SinkLaws
    from cutwater.testing.connectors.source_laws import SourceLaws
except ModuleNotFoundError as error:
    raise _not_installed("cutwater.testing.connectors", error) or error from None

__all__ = [
    "Click",
    "Counted",
    "KilledSink",
    "KilledSource",
    "SinkLaws",
    "SourceLaws",
    "click",
    "expected",
]
