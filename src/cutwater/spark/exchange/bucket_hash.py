"""Labels of buckets: grouping keys that Spark's hash spreads evenly over the partitions.

Spark assigns a group to partition ``pmod(murmur3(label, 42), partitions)``. The labels 0 to 15
would leave 6 of 16 partitions empty, so each bucket gets a label whose hash is congruent to its
number. This spreads buckets evenly over every number of partitions that divides the number of
buckets, so labels need not change when the partitions do.
"""

from __future__ import annotations

from functools import cache
from itertools import count

__all__ = ["labels", "spark_hash"]

_MASK = 0xFFFFFFFF


def spark_hash(value: int, seed: int = 42) -> int:
    """Spark's hash of an int column (Murmur3, 32 bit).

    >>> spark_hash(0), spark_hash(1)
    (933211791, -559580957)
    """
    k = (value & _MASK) * 0xCC9E2D51 & _MASK
    k = _rotate(k, 15) * 0x1B873593 & _MASK
    h = (_rotate(seed ^ k, 13) * 5 + 0xE6546B64) & _MASK
    h ^= 4
    h = (h ^ (h >> 16)) * 0x85EBCA6B & _MASK
    h = (h ^ (h >> 13)) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def _rotate(x: int, bits: int) -> int:
    return ((x << bits) | (x >> (32 - bits))) & _MASK


@cache
def labels(buckets: int) -> tuple[int, ...]:
    """The label of each bucket.

    >>> [spark_hash(label) % 4 for label in labels(4)]
    [0, 1, 2, 3]
    """
    found: dict[int, int] = {}
    for candidate in count():
        found.setdefault(spark_hash(candidate) % buckets, candidate)
        if len(found) == buckets:
            return tuple(found[bucket] for bucket in range(buckets))
    raise AssertionError
