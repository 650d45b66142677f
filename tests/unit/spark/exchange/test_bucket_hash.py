"""Labels: our hash is Spark's, and the buckets spread evenly."""

from collections import Counter

import pytest

from cutwater.spark.exchange.bucket_hash import labels, spark_hash

EXTREMES = [0, 1, -1, 2**31 - 1, -(2**31), 42, 1_000_003]


@pytest.mark.parametrize("buckets", [1, 2, 3, 7, 16, 64, 100])
def test_each_bucket_has_a_label_of_its_own(buckets):
    found = labels(buckets)
    assert len(found) == len(set(found)) == buckets
    assert [spark_hash(label) % buckets for label in found] == list(range(buckets))


@pytest.mark.parametrize("buckets", [16, 64, 96])
def test_every_number_of_partitions_that_divides_the_buckets_gets_equal_shares(buckets):
    for partitions in (n for n in range(1, buckets + 1) if buckets % n == 0):
        shares = Counter(spark_hash(label) % partitions for label in labels(buckets))
        assert set(shares.values()) == {buckets // partitions}
        assert len(shares) == partitions


def test_plain_numbers_would_not_spread():
    """Why there are labels at all: 0 to 15 leave 6 of 16 partitions empty."""
    assert len({spark_hash(number) % 16 for number in range(16)}) == 10


def test_labels_are_for_life():
    """Checkpoints depend on them, so they must never change."""
    assert labels(16) == (12, 16, 5, 1, 37, 20, 2, 35, 13, 6, 49, 7, 25, 15, 4, 0)


@pytest.mark.spark
def test_the_hash_is_the_one_that_spark_computes(spark):
    from pyspark.sql import functions as f
    from pyspark.sql.types import IntegerType

    numbers = [*EXTREMES, *range(200), *labels(64)]
    frame = spark.createDataFrame(numbers, IntegerType()).select("value", f.hash("value"))
    assert {row[0]: row[1] for row in frame.collect()} == {n: spark_hash(n) for n in numbers}


@pytest.mark.spark
def test_spark_sends_each_label_where_we_think(spark):
    from pyspark.sql import functions as f
    from pyspark.sql.types import IntegerType

    frame = spark.createDataFrame(list(labels(16)), IntegerType()).repartition(4, "value")
    placed = {row[0]: row[1] for row in frame.select("value", f.spark_partition_id()).collect()}
    assert placed == {label: bucket % 4 for bucket, label in enumerate(labels(16))}
