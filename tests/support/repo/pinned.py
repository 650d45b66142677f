"""Texts that people read, kept in files beside the tests that make them.

After a wanted change: ``CUTWATER_UPDATE_PINNED=1 make test ARGS=tests/snapshots`` rewrites them.
"""

import os
import re
from pathlib import Path


def assert_pinned(path: Path, text: str) -> None:
    """The text is the one in the file, character by character."""
    if os.environ.get("CUTWATER_UPDATE_PINNED"):
        path.write_text(text)
    assert text == path.read_text()


def without_places(text: str) -> str:
    """The text with every ``file.py:12`` replaced, which changes with the test itself."""
    return re.sub(r"[^\s()']*\.py:\d+", "jobs.py:LINE", text)
