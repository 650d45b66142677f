"""The log of a folder of JSON lines, for tests that plan epochs by hand."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from cutwater.spark.checkpoint.offset_log import ChunkLog
from cutwater.spark.connectors.base.watermarks import SourceTracker
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.connectors.files.listing import FilesPlanner


class FileLog(ChunkLog):
    """Such a log, of which each epoch may have another limit."""

    def __init__(
        self,
        folder: Path,
        log: Path,
        tracker: SourceTracker | None = None,
        now: Callable[[], float] = time.time,
        tp: Any = Any,
        generation: int = 0,
    ) -> None:
        super().__init__(JsonLines(str(folder)), tp, log, tracker, now, generation)

    def unread(self) -> list[str]:
        """The files that no entry has taken yet, by name."""
        return self._files_planner.unread()

    def take(self, max_bytes: int) -> int:
        """Take up to so many bytes into a new entry; the newest entry's number."""
        planner = self._files_planner
        planner._source = replace(planner._source, max_bytes_per_epoch=max_bytes)  # type: ignore[type-var]
        return self.extend()

    @property
    def _files_planner(self) -> FilesPlanner:
        planner = self._plan._planner
        assert isinstance(planner, FilesPlanner)
        return planner
