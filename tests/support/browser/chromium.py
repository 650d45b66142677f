"""Where the browser is that some tests drive."""

import os
import shutil
from collections.abc import Iterator

import pytest
from support.browser.driven_browser import Browser
from support.repo.not_run import need


def find_chromium() -> str:
    """Return the path of a Chromium; without one the current test is not run."""
    names = [os.environ.get("CUTWATER_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"]
    found = filter(None, map(shutil.which, filter(None, names)))
    return next(found, None) or need("no Chromium found", provided_by="make services")


@pytest.fixture(scope="session")
def chromium() -> str:
    return find_chromium()


@pytest.fixture(scope="module")
def browser(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    driven = Browser(chromium, tmp_path_factory.mktemp("browser") / "profile")
    yield driven
    driven.close()
