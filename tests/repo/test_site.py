"""The documentation site: it is made without a warning, and has all that is public."""

import importlib
import inspect
import re
import subprocess
import sys

import pytest
from support.repo.package import ROOT

pytestmark = pytest.mark.slow

REFERENCE = {
    "cutwater": "cutwater",
    "cutwater.spark": "spark",
    "cutwater.operators": "operators",
    "cutwater.checking": "checking",
    "cutwater.vectors": "others",
    "cutwater.progress": "others",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A link that leads nowhere and a page in no list are warnings, and end it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    made = subprocess.run([*command, ROOT / "docs", folder], capture_output=True, text=True)
    assert (made.returncode, made.stderr) == (0, "")
    return folder


def test_every_page_is_reached_from_the_first(site):
    pages = {page.relative_to(site) for page in site.rglob("*.html")}
    written = {
        page.relative_to(ROOT / "docs").with_suffix(".html")
        for page in (ROOT / "docs").rglob("*.md")
    }
    assert written <= pages
    listed = set(re.findall(r'href="([^"#]+\.html)"', (site / "index.html").read_text()))
    assert {str(page) for page in written} - {"index.html"} <= listed


def is_documented(value):
    """Has it a docstring of its own?"""
    return inspect.isclass(value) or inspect.isroutine(value)


@pytest.mark.parametrize("name", REFERENCE)
def test_every_public_function_and_class_is_in_the_reference(site, name):
    package = importlib.import_module(name)
    public = [each for each in package.__all__ if is_documented(getattr(package, each))]
    page = (site / "reference" / f"{REFERENCE[name]}.html").read_text()
    above = (site / "reference" / "cutwater.html").read_text()
    own, at_top = f'id="{name}.%s"', 'id="cutwater.%s"'
    shown = [each for each in public if own % each in page or at_top % each in above]
    assert shown == public


@pytest.mark.browser
def test_a_page_opens_without_a_complaint(site, browser):
    page = browser.open((site / "gallery.html").as_uri())
    assert page.complaints == []
    assert page.count("div.highlight") > 5
    assert all(address.startswith(("file:", "data:")) for address in page.requests)
