"""Which extra of this package to install for a missing dependency."""

from __future__ import annotations

from collections.abc import Mapping

from cutwater.errors import Problem, RefusedError

__all__ = ["EXTRAS", "not_installed"]

EXTRAS: Mapping[str, str] = {
    "confluent_kafka": "kafka",
    "deltalake": "delta",
    "google": "spark,java",
    "numpy": "spark,java",
    "opentelemetry": "otel",
    "pandas": "spark,java",
    "prometheus_client": "spark,java",
    "psycopg": "postgres",
    "pyarrow": "spark,java",
    "pyspark": "spark,java",
    "rocksdict": "spark,java",
}
"""Extras by the import name of the package they bring."""


def not_installed(subject: str, error: ModuleNotFoundError) -> RefusedError | None:
    """The error that says which extra to install; None if no extra brings the package.

    >>> print(not_installed("cutwater.spark.run", ModuleNotFoundError(name="pyspark.sql")))
    [not-installed] cutwater.spark.run needs the package 'pyspark', which is not installed
      hint: pip install 'cutwater[spark,java]'
    """
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return None
    return RefusedError(
        Problem(
            "not-installed",
            f"{subject} needs the package '{package}', which is not installed",
            f"pip install 'cutwater[{EXTRAS[package]}]'",
        )
    )
