"""Metrics of a run for OpenTelemetry, sent where its standard environment variables say.

They are the same as those for Prometheus, with dots in their names. Without
``OTEL_EXPORTER_OTLP_ENDPOINT``, or that for metrics alone, nothing is sent and nothing is needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cutwater.errors import Problem, RefusedError
from cutwater.spark.telemetry.metrics import DURATIONS, Metrics
from cutwater.spark.telemetry.progress import RunProgress

__all__ = ["exporting", "is_asked_for"]

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def is_asked_for() -> bool:
    """Do the environment variables say where metrics are to be sent?"""
    is_off = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    is_off = is_off or os.environ.get("OTEL_METRICS_EXPORTER", "otlp") != "otlp"
    return not is_off and any(os.environ.get(name) for name in _ENDPOINTS)


@contextmanager
def exporting(metrics: Metrics, reader: Any = None) -> Iterator[Callable[[RunProgress], None]]:
    """Send metrics inside; yields a function that counts epochs, for durations.

    `reader` is one of OpenTelemetry's; default: as the environment says.
    """
    try:
        from opentelemetry.metrics import Observation
        from opentelemetry.sdk.metrics import MeterProvider

        reader = reader or _reader()
    except ModuleNotFoundError as error:
        raise RefusedError(_not_installed(str(error.name))) from None
    provider = MeterProvider([reader], shutdown_on_exit=False)
    meter = provider.get_meter("cutwater")

    def observe(name: str) -> Callable[[Any], list[Any]]:
        return lambda _options: [
            Observation(sample.value, sample.labels) for sample in metrics.samples(name)
        ]

    for family in metrics.families():
        name = _dotted(family.name)
        if family.type == "counter":
            meter.create_observable_counter(
                name, [observe(family.name)], description=family.documentation
            )
        elif family.type == "gauge":
            meter.create_observable_gauge(
                name, [observe(family.name)], description=family.documentation
            )
    durations = meter.create_histogram(
        "cutwater.epoch.duration", "s", explicit_bucket_boundaries_advisory=list(DURATIONS)
    )
    try:
        yield lambda progress: durations.record(progress.duration_ms / 1000, {"flow": metrics.flow})
    finally:
        provider.shutdown()


def _reader() -> Any:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    return PeriodicExportingMetricReader(OTLPMetricExporter())


def _dotted(name: str) -> str:
    """The name in OpenTelemetry.

    >>> _dotted("cutwater_late_events")
    'cutwater.late.events'
    """
    return name.replace("_", ".")


def _not_installed(package: str) -> Problem:
    asked = next(name for name in _ENDPOINTS if os.environ.get(name))
    return Problem(
        "no-opentelemetry",
        f"{asked} asks for metrics to be sent, but the package '{package}' is not installed",
        f"pip install 'cutwater[otel]', or unset {asked}",
    )
