"""Functions that number what they see or keep what they computed: pure until a restart."""

from functools import lru_cache
from itertools import count

ids: dict[str, int] = {}
counter = count()


def numbered(word: str) -> int:
    return ids.setdefault(word, len(ids))


@lru_cache
def cached(word: str) -> int:
    return next(counter)
