"""Reads a checkpoint of the real-time engine for people, without Spark, even during a run.

`state` reads the state of a step at a tick, `verify` checks every file. Snapshots and plans are our
own files, so neither needs a session. Imports `checkpoint` and the files of the engine around it.
Begin with `state`.
"""

__all__: list[str] = []
