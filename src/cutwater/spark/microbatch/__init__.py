"""The micro-batch engine: one Structured Streaming query for each flow.

`query` builds and drives it; `source_reader` plans epochs and reads them, all stateful segments of
one depth are one `stateful_operator`, and one `writer` serves all sinks. A loop may run one round
per epoch (`feedback`). Imports everything of `spark` but the other engine. Begin with `query`.
"""

__all__: list[str] = []
