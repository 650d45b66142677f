"""Folders of files: JSON lines, CSV and Parquet as sources, one rename per epoch as a sink.

`listing` says which files there are and in which order, `watching` and `changes` that none of them
changes unnoticed, `json_source`, `csv_source` and
`parquet_source` read them, `sink` publishes an epoch with its ledger beside it. Imports `base`,
`exchange` and `storage`. Begin with `sink` or `json_source`.
"""

__all__: list[str] = []
