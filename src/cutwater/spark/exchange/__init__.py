"""Rows between stages: what is shuffled, how it is encoded, and where it goes.

The `event_codec` encodes a `batch` of events as the body of an `envelope`; the `router` decides
which bucket (`bucket_hash`) or sink it goes to. `columns` holds records as columns. Imports `job`,
`state` and the contract of sinks; no connector and no engine. Begin with `envelope`.
"""

__all__: list[str] = []
