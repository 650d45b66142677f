"""Testing flows and connectors with pytest: a plugin, and a conformance kit.

`plugin` has `assert_transparent`, whose failure is a counterexample; pytest loads it automatically.
`connectors` has the laws that sources and sinks keep, and kills them as ours are killed. Imports
everything. Begin with `plugin`.
"""

from cutwater.testing.plugin import assert_transparent, pytest_addoption, pytest_configure

__all__ = ["assert_transparent", "pytest_addoption", "pytest_configure"]
