"""Rows between stages: what is sent, how it is encoded, and where it goes.

A `batch` of events is encoded by the `event_codec` into the body of an `envelope`; the `router`
says which bucket (`bucket_hash`) or sink it goes to. `columns` holds records as columns. Imports
`job`, `state` and the contract of sinks; no connector and no engine. Begin with `envelope`.
"""

__all__: list[str] = []
