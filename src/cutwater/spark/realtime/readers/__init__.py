"""The readers of a real-time run: the first of a source plans its ticks, others read a share.

`reader_task` cuts and plans, `follower_task` reads what was planned, `pace` says how long a tick
is. Imports the plan, positions and wire of the engine around it. Begin with `reader_task`.
"""

__all__: list[str] = []
