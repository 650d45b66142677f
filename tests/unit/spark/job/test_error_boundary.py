"""What reaches the driver of an error in a task."""

import pytest

from cutwater.errors import RunError
from cutwater.spark.job.error_boundary import error_boundary


def test_our_errors_are_quoted_and_others_are_not():
    with pytest.raises(RuntimeError, match="<<cutwater:"), error_boundary():
        raise RunError([])
    with pytest.raises(KeyError), error_boundary():
        raise KeyError
