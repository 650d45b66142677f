"""Reads the files of Spark's state store without a JVM.

A bucket's changelog at an epoch is the newest snapshot (`snapshot_file`) and the changelogs since
(`changelog_file`), whose keys and values are Spark rows (`rows`). Files that another version or
setting of Spark wrote raise `UnknownFormatError`; Spark itself can read them. Imports checksums and
storage. Begin with `files`.
"""

from cutwater.spark.checkpoint.state_store.files import StateStoreFiles
from cutwater.spark.checkpoint.state_store.formats import DamagedStateError, UnknownFormatError

__all__ = ["DamagedStateError", "StateStoreFiles", "UnknownFormatError"]
