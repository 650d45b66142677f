"""A table of PostgreSQL with a sink, and what tasks do with it."""

from dataclasses import dataclass, replace
from itertools import count

import pytest

from cutwater.spark.connectors.base.sink import BucketRows, Claim
from cutwater.spark.connectors.postgres import postgres_table
from cutwater.spark.exchange.columns import Records
from cutwater.vectors import Layout

NUMBERS = count()


@dataclass(frozen=True)
class Reading:
    key: str
    n: int


class Out:
    """A table with a sink, and what a task does with it."""

    def __init__(self, server, folder, **settings):
        self.server = server
        self.table = f"out_{next(NUMBERS)}"
        settings = {"release": "early", "create": True, **settings}
        self.sink = postgres_table(table=self.table, dsn=server.dsn, **settings)
        self.claim = Claim("flow", "readings", "q", 1, str(folder))

    def ready(self):
        self.sink.prepare("readings", Reading)
        self.sink.claim(self.claim)
        return self

    def restart(self):
        """The next generation; what is left of the former one is a zombie's."""
        self.claim = replace(self.claim, generation=self.claim.generation + 1)
        self.sink.claim(self.claim)

    def write(self, epoch, buckets, claim=None):
        """Write {label: numbers}; rows are ordered by their numbers."""
        made = [
            BucketRows(
                label, [b"%09d" % n for n in ns], records([Reading(f"k{label}", n) for n in ns])
            )
            for label, ns in sorted(buckets.items())
        ]
        return self.sink.write(claim or self.claim, epoch, Reading, made)

    def publish(self, epoch, receipts, claim=None):
        self.sink.publish(claim or self.claim, epoch, receipts)

    def rows(self):
        """As they lie in the table, which only ever grows."""
        return self.server.execute(f"SELECT key, n FROM {self.table} ORDER BY ctid")

    def buckets(self):
        """What lies there of each bucket, in that order."""
        found = {}
        for key, n in self.rows():
            found.setdefault(int(key[1:]), []).append(n)
        return found


def records(values):
    return Records.of(Layout.of(type(values[0])), values)


@pytest.fixture
def out(postgres, tmp_path):
    return Out(postgres, tmp_path).ready()


@pytest.fixture
def make_out(postgres, tmp_path):
    return lambda **settings: Out(postgres, tmp_path, **settings)
