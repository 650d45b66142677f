"""numpy, imported on first use: neither defining a flow nor importing the package needs it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cutwater.errors import Problem, RunError

__all__ = ["Array", "np"]

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]
else:
    Array = Any

    class _Numpy:
        def __getattr__(self, name: str) -> Any:
            found = getattr(_imported(), name)
            setattr(self, name, found)  # cached for the next access
            return found

    np = _Numpy()


def _imported() -> Any:
    try:
        return importlib.import_module("numpy")
    except ImportError:
        raise RunError(
            Problem(
                "no-numpy",
                "the flow has a vectorised task, and numpy is not installed",
                "install it: pip install numpy, or the extra 'spark' of cutwater",
            )
        ) from None
