"""Kafka: a topic as a source, and one as a sink with rows and ledger in one transaction.

`transactions` and `ledger` make rows appear once, `checks` looks at topics and makes them, `errors`
turns Kafka's into sentences. Nothing here imports the client before it is used: it comes with the
extra `kafka`. Begin with `sink` or `source`.
"""

__all__: list[str] = []
