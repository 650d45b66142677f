"""What a run reports while it runs: progress, metrics, OpenTelemetry and the run log.

`progress` is computed from Spark's report and our own logs; the others export it. Best effort:
nothing depends on it. Imports `checkpoint`, `job` and `storage`. Begin with `progress`.
"""

__all__: list[str] = []
