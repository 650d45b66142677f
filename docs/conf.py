"""The documentation site: `make docs` writes it to ``build/docs``."""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, NumpyDocstring

__all__: list[str] = []

project = "Cutwater"
copyright = "the authors of Cutwater"
release = importlib.metadata.version("cutwater")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
html_theme = "furo"
html_title = "Cutwater"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]

myst_heading_anchors = 4
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_preserve_defaults = True
# A name in backticks may be that of several methods; it is then shown without a link.
suppress_warnings = ["ref.python"]


def setup(app: Sphinx) -> None:
    """Register what is ours."""
    for name in ("cutwater", "cutwater.spark", "cutwater.vectors"):
        _load_lazy_names(name)
    app.connect("autodoc-process-docstring", _read_parameters)


def _load_lazy_names(name: str) -> None:
    """Some packages load a name when it is first used; the reference shows all of them."""
    package = importlib.import_module(name)
    vars(package).update({each: getattr(package, each) for each in package.__all__})


def _read_parameters(
    app: Sphinx, what: str, name: str, subject: Any, options: Any, lines: list[str]
) -> None:
    """Lists of parameters are in numpy's style.

    As an extension napoleon would also read what stands before a colon below an attribute as its
    type.
    """
    if what in ("function", "method", "class"):
        lines[:] = NumpyDocstring(lines, Config(), app, what, name, subject, options).lines()
