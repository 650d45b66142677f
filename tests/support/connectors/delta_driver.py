"""A process that publishes epochs to a Delta table until it is killed: a driver without Spark.

Run as ``python -m support.connectors.delta_driver TABLE CHECKPOINT EPOCHS``. The checkpoint has a
file for each epoch
that is finished, written after the epoch is published, as Spark's commit log is.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from support.connectors.sink_rows import bucket, claim

from cutwater.spark.connectors.delta.sink import Delta


@dataclass(frozen=True)
class Row:
    epoch: int
    number: int


def table_at(path: str) -> Delta:
    return Delta(path, compact_every=3, keep_hours=0)


def rows_of(epoch: int) -> list[Row]:
    return [Row(epoch, number) for number in range(epoch % 4)]


def main(path: str, checkpoint: Path, epochs: int) -> None:
    table = table_at(path)
    table.prepare("means", Row)
    who = claim(table.generation("means") + 1)
    table.claim(who)
    finished = [int(file.name) for file in checkpoint.iterdir()]
    for epoch in range(max(finished, default=-1) + 1, epochs):
        rows = rows_of(epoch)
        staged = [table.write(who, epoch, Row, [bucket(Row, [row])]) for row in rows]
        table.publish(who, epoch, staged)
        (checkpoint / str(epoch)).touch()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
