"""Kafka: a topic as a source, and a topic as a sink with rows and ledger in one transaction.

`transactions` and `ledger` make rows appear once, `checks` inspects and creates topics, `errors`
explains Kafka's errors. Nothing here imports the client before it is used: it comes with the extra
`kafka`. Begin with `sink` or `source`.
"""

__all__: list[str] = []
