"""Folders of files: JSON lines, CSV and Parquet as sources, an atomic rename per epoch as a sink.

`listing` says which files there are and in which order; `json_source`, `csv_source` and
`parquet_source` read them; `sink` publishes an epoch by one rename of a directory, with its ledger
beside it. Begin with `sink` or `json_source`.
"""

__all__: list[str] = []
