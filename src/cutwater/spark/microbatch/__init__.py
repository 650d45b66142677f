"""The engine on micro-batches: one Structured Streaming query for each flow.

`query` builds and drives it; `source_reader` plans epochs and reads them, all stateful
segments of a depth are one `stateful_operator`, and one `writer` serves all sinks. A loop may turn
a round an epoch (`feedback`). Imports everything of `spark` but another engine. Begin with `query`.
"""

__all__: list[str] = []
