"""The contract of a source and of a sink, and what all connectors share.

`source` says what is unread and how it is read, `sink` how rows are shown once; `watermarks` is
how far a source is in event time, `side_outputs` where bad records and late events go. Imports
`exchange` and `storage`. Begin with `sink` or `source`.
"""

__all__: list[str] = []
