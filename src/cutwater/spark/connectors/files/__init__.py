"""Folders of files: JSON lines, CSV and Parquet as sources, one rename per epoch as a sink.

`listing` lists and orders files, `watching` and `changes` detect files that changed, `json_source`,
`csv_source` and `parquet_source` read them, `sink` publishes epochs and keeps a ledger beside them.
Imports `base`, `exchange` and `storage`. Begin with `sink` or `json_source`.
"""

__all__: list[str] = []
