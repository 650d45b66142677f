"""The folder that remembers how far a run is, and everything that is done with it.

`store` is the folder, `lock` who may write, `compatibility` which changes of a flow it goes on
with, `offset_log` which records belong to which epoch; `verify`, `inspect`, `state_reader`,
`rescale` and `relocate` are for operating it. Imports `storage`, `job` and `state`; no engine.
Begin with `store`.
"""

__all__: list[str] = []
