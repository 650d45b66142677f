"""The contract of a source and of a sink, and what all connectors share.

`source` plans and reads the input, `sink` makes rows visible exactly once; `watermarks` tracks the
event time of a source, `side_outputs` names the sinks of bad records and late events. Imports
`exchange` and `storage`. Begin with `sink` or `source`.
"""

__all__: list[str] = []
