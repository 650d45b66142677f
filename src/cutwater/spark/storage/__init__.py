"""Files that are written atomically, and logs made of them.

`durable` writes, renames and syncs; `entry_log` is a log of numbered entries. Imports nothing else
of `spark`. Begin with `durable`.
"""

__all__: list[str] = []
