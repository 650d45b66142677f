"""Reading a source through the real reader, epoch by epoch, without a JVM."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from support.spark.toy_spark import make_job

import cutwater as cw
from cutwater.errors import CutwaterError, extract
from cutwater.spark import folder
from cutwater.spark.connectors.base.side_outputs import bad_records_sink
from cutwater.spark.connectors.base.source import SourceConnector
from cutwater.spark.exchange.envelope import DATA, ROW_SCHEMA, unpack_lines
from cutwater.spark.job.transport import dump_job
from cutwater.spark.microbatch.source_reader import EpochDataSource


@dataclass
class Copied:
    """What comes out of a flow that copies a source to a sink."""

    epochs: list[list[bytes]]
    """The lines of each epoch, in order."""
    bad: list[bytes]
    """The lines that are kept of bad records, in order."""

    @property
    def lines(self) -> list[bytes]:
        return [line for epoch in self.epochs for line in epoch]


class Copier:
    """A flow from a source, called items, to a sink."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __call__(self, source: SourceConnector, tp: Any, **settings: Any) -> Copied:
        reader = self.reader(source, tp, **settings)
        reader.prepareForTriggerAvailableNow()
        copied = Copied([], [])
        offset = reader.initialOffset()
        while True:
            end = reader.latestOffset(offset, reader.getDefaultReadLimit())
            if end == offset:
                return copied
            found: dict[int, list[tuple[bytes, bytes]]] = {}
            for part in reader.partitions(offset, end):
                for row in (row for batch in reader.read(part) for row in batch.to_pylist()):
                    assert row["kind"] == DATA
                    entries = zip(*unpack_lines(row["body"]), strict=True)
                    found.setdefault(row["target"], []).extend(entries)
            out, bad = ([line for _, line in sorted(found.get(n, []))] for n in (1, 2))
            copied.epochs.append(out)
            copied.bad += bad
            offset = end

    def reader(self, source: SourceConnector, tp: Any, **settings: Any) -> Any:
        flow = cw.Flow("copy")
        flow.sink("out", flow.source("items", tp))
        job = make_job(flow, self._root, sources={"items": source}, **settings)
        if job.skip_bad_records:
            side_output = folder(str(self._root / "bad"))
            job = replace(job, sinks={**job.sinks, bad_records_sink("items"): side_output})
        return EpochDataSource.of(dump_job(job), "items", 0)({}).streamReader(ROW_SCHEMA)

    def refused(self, source: SourceConnector, tp: Any, **settings: Any) -> str:
        """The sentence with which a source is refused."""
        with pytest.raises(RuntimeError) as failed:
            self(source, tp, **settings)
        error = extract(str(failed.value))
        assert isinstance(error, CutwaterError)
        return str(error)
