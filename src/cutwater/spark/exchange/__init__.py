"""Rows between stages: what is sent, how it is encoded, and where it goes.

A `batch` of events is encoded by the `event_codec` into the body of an `envelope`; the `router`
says which bucket (`bucket_hash`) or sink it goes to. `columns` holds records as columns, and
`sink_rows` is what sinks are given. Knows no connector but their contract, and no engine. Begin
with `envelope`, then `router`.
"""

__all__: list[str] = []
