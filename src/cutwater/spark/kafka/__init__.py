"""What the source and the sink of Kafka share: how to reach a cluster, and what its errors mean.

Nothing here imports the client before it is used: it comes with an extra of its own.
"""

__all__: list[str] = []
