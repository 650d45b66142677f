"""Files that went wrong: cut, overwritten, mixed up, in ways that a seed draws."""

import random
import re
from collections.abc import Callable, Iterator

COUNT = 300

_STRANGE = (
    b"",
    b"\x00",
    b"\xff\xfe",
    b"\xed\xa0\x80",  # half a character
    b"\xc3",
    b"null",
    b"NaN",
    b"-1",
    b"1e999",
    b"9" * 4_400,
    b"1" + b"0" * 40,
    b"[" * 2_000,
    b'{"a":' * 2_000,
    b"[]",
    b"{}",
    b'""',
    b'"\\ud800"',
    b"true",
    b"v1\n",
    b"\n",
    b"\r\n",
    b"\x1b]0;x\x07",
    b"../../evil",
)


def _at(rng: random.Random, data: bytes) -> int:
    return rng.randrange(len(data) + 1)


def _cut(rng: random.Random, data: bytes) -> bytes:
    return data[: _at(rng, data)]


def _flip(rng: random.Random, data: bytes) -> bytes:
    at = _at(rng, data)
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def _remove(rng: random.Random, data: bytes) -> bytes:
    start, end = sorted((_at(rng, data), _at(rng, data)))
    return data[:start] + data[end:]


def _repeat(rng: random.Random, data: bytes) -> bytes:
    start, end = sorted((_at(rng, data), _at(rng, data)))
    return data[:end] + data[start:end] + data[end:]


def _insert(rng: random.Random, data: bytes) -> bytes:
    at = _at(rng, data)
    return data[:at] + rng.choice(_STRANGE) + data[at:]


def _retype(rng: random.Random, data: bytes) -> bytes:
    """Put something strange in the place of a value: a number, a text, a word."""
    found = list(re.finditer(rb'"[^"]*"|-?\d+(\.\d+)?|true|false|null', data))
    if not found:
        return _insert(rng, data)
    value = rng.choice(found)
    return data[: value.start()] + rng.choice(_STRANGE) + data[value.end() :]


def _drop_line(rng: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    if lines:
        del lines[rng.randrange(len(lines))]
    return b"".join(lines)


def _replace(rng: random.Random, data: bytes) -> bytes:
    return rng.choice(_STRANGE)


_WAYS: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    _cut,
    _flip,
    _remove,
    _repeat,
    _insert,
    _retype,
    _retype,
    _drop_line,
    _replace,
)


def mutations(data: bytes, seed: int, count: int = COUNT) -> Iterator[bytes]:
    """So many files that went wrong, the same for a seed."""
    rng = random.Random(seed)
    for _ in range(count):
        mutated = data
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            mutated = rng.choice(_WAYS)(rng, mutated)
        yield mutated


def tolerate(
    data: bytes, look: Callable[[], object], allowed: type[Exception] | tuple[type[Exception], ...]
) -> None:
    """Assert that a look at a file ends well or with an error that is allowed."""
    try:
        look()
    except allowed:
        pass
    except BaseException as error:
        shown = data if len(data) < 400 else data[:400] + b"..."
        raise AssertionError(f"{type(error).__name__}: {error}\nof {shown!r}") from error
