"""The folder that records the progress of a run, and the operations on it.

`store` is the folder, `lock` decides which run may write, `compatibility` which changes of a flow
it accepts, `offset_log` which records belong to which epoch; `verify`, `inspect`, `state_reader`,
`rescale` and `relocate` are for operating it. Imports `storage`, `job` and `state`; no engine.
Begin with `store`.
"""

__all__: list[str] = []
