"""What several tests of flows need."""

import pytest


@pytest.fixture(scope="module")
def any_name():
    """Drawing escapes every name, whether or not validation refuses it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cutwater.flow.validation._why_no_name", lambda _name: None)
        yield
