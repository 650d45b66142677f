"""Testing flows with pytest: a counterexample is the text of the failure.

Installed with the package: pytest loads it automatically. ``--cutwater-seed`` draws other inputs
and other random runs.

.. code-block:: python

    from cutwater.testing import assert_transparent

    def test_crashes_cannot_be_seen():
        assert_transparent(flow, {"words": ["a", "b"]}, crashes=2)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

    from cutwater.checking import FlowReport
    from cutwater.flow import Flow

__all__ = ["assert_transparent", "pytest_addoption", "pytest_configure"]

_settings = {"seed": 0}


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the plugin."""
    group = parser.getgroup("cutwater")
    group.addoption(
        "--cutwater-seed", type=int, default=0, help="what assert_transparent draws from"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Store the options of the plugin."""
    _settings["seed"] = config.getoption("--cutwater-seed")


def assert_transparent(
    flow: Flow,
    inputs: Mapping[str, Iterable[Any]] | None = None,
    *,
    seed: int | None = None,
    **options: Any,
) -> FlowReport:
    """Fail unless no crash of a flow can be seen; the failure shows the shrunk counterexample.

    Parameters and options are those of `cutwater.check`; the seed is that of the command line.
    Returns the report, which says how far the search went.

    Examples
    --------
    >>> from cutwater import Flow
    >>> flow = Flow("copy")
    >>> _ = flow.source("here", str).sink("there")
    >>> assert_transparent(flow, crashes=1).holds
    True
    """
    from cutwater.checking import check_flow

    __tracebackhide__ = True
    drawn = _settings["seed"] if seed is None else seed
    report = check_flow(flow, inputs, seed=drawn, **options)
    if report.is_interrupted:
        raise KeyboardInterrupt
    if not report.holds:
        raise AssertionError(f"{report}\nto reproduce it: seed={drawn}")
    return report
