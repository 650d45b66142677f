"""The number of partitions over which the state of a flow is spread.

A divisor of the number of buckets spreads them evenly (`labels`). It is chosen when a checkpoint is
created and fixed from then on; `rescale` changes it while nothing runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from cutwater.errors import Problem

__all__ = ["SETTING", "check_partitions", "shuffling_to", "suitable_partitions"]

SETTING = "spark.sql.shuffle.partitions"


def check_partitions(partitions: int, buckets: int) -> list[Problem]:
    """Why the buckets cannot be spread over this number of partitions.

    >>> check_partitions(4, 16)
    []
    """
    if type(partitions) is int and partitions in _divisors(buckets):
        return []
    choices = ", ".join(map(str, _divisors(buckets)))
    return [
        Problem(
            "partitions-do-not-divide",
            f"the number of partitions is {partitions!r}; the {buckets} buckets of a flow are "
            "divided evenly among its partitions",
            f"choose one of {choices}",
        )
    ]


def suitable_partitions(spark: SparkSession, buckets: int) -> int:
    """The number for a new checkpoint: the session's shuffle partitions if they divide the buckets.

    Otherwise the largest divisor that is not above the number of cores.
    """
    given = spark.conf.get(SETTING, None) or ""
    if given.isdigit() and int(given) in _divisors(buckets):
        return int(given)
    cores = spark.sparkContext.defaultParallelism
    return max((n for n in _divisors(buckets) if n <= cores), default=1)


@contextmanager
def shuffling_to(spark: SparkSession, partitions: int) -> Iterator[None]:
    """Inside, queries start with this number of partitions; restores the session's setting after.

    A query uses the settings of its session when it starts, and those of its checkpoint from its
    second epoch on.
    """
    before = spark.conf.get(SETTING, None)
    spark.conf.set(SETTING, str(partitions))
    try:
        yield
    finally:
        spark.conf.set(SETTING, before) if before is not None else spark.conf.unset(SETTING)


def _divisors(buckets: int) -> list[int]:
    return [n for n in range(1, buckets + 1) if buckets % n == 0]
