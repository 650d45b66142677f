"""Metrics, the log of a run, and what is made of Spark's reports."""

import gzip
import http.server
import io
import json
import math
import threading
import urllib.request
from dataclasses import replace

import pytest

from cutwater.errors import InputError, Problem, RunError
from cutwater.spark.telemetry.frontiers import Position
from cutwater.spark.telemetry.metrics import Metrics, serve
from cutwater.spark.telemetry.progress import (
    FrontierProgress,
    RunProgress,
    SnapshotProgress,
    SourceProgress,
)
from cutwater.spark.telemetry.run_log import RunLog, logging_to

EPOCH = RunProgress(
    epoch=7,
    duration_ms=300,
    durations_ms={"addBatch": 200},
    rows={"out": 5},
    sources={
        "in": SourceProgress(100, "bytes", "2026-01-01", "2025-12-31", 30.0),
        "frame": SourceProgress(),
    },
    late=2,
    bad_records=1,
    state_bytes=4096,
    state_memory_bytes=8192,
)


def lines(text):
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


@pytest.fixture
def clock():
    return [1000.0]


@pytest.fixture
def metrics(clock):
    return Metrics('a "flow"\n', now=lambda: clock[0])


def test_the_age_of_a_snapshot_grows_until_there_is_another(metrics, clock):
    assert metrics.samples("cutwater_snapshot_age_seconds") == []
    metrics.note(replace(EPOCH, snapshot=SnapshotProgress(7, 2.0, 5.0, 3, "No space left")))
    clock[0] += 10
    [age] = metrics.samples("cutwater_snapshot_age_seconds")
    [failures] = metrics.samples("cutwater_snapshot_failures")
    assert (age.value, failures.value) == (12.0, 3)


def test_the_lag_of_a_step_is_labelled_with_what_holds_it_now(metrics, clock):
    holders = [(Position("in", "3"),), (Position("in", "0"),)]
    for lag, held in zip((40.0, math.inf), holders, strict=True):
        frontiers = {"hourly": FrontierProgress(None, lag, held)}
        metrics.note(replace(EPOCH, frontiers=frontiers))
        clock[0] += 10
        [sample] = metrics.samples("cutwater_frontier_lag_seconds")
        assert sample.labels["holder"] == held[0].label
        assert sample.value == lag + 10
    assert 'holder="in[0]",step="hourly"} +Inf' in metrics.text()


def test_counters_add_up_and_gauges_are_replaced(metrics):
    metrics.note(EPOCH)
    metrics.note(replace(EPOCH, epoch=8, rows={"out": 2}, duration_ms=70_000))
    found = lines(metrics.text())
    flow = 'flow="a \\"flow\\"\\n"'
    assert found[f"cutwater_epochs_total{{{flow}}}"] == "2.0"
    assert found[f"cutwater_epoch{{{flow}}}"] == "8.0"
    assert found[f'cutwater_rows_total{{{flow},sink="out"}}'] == "7.0"
    assert found[f'cutwater_read_total{{{flow},source="in",unit="bytes"}}'] == "200.0"
    assert found[f"cutwater_late_events_total{{{flow}}}"] == "4.0"
    assert found[f"cutwater_bad_records_total{{{flow}}}"] == "2.0"
    assert found[f"cutwater_state_bytes{{{flow}}}"] == "4096.0"
    assert found[f'cutwater_epoch_duration_seconds_bucket{{{flow},le="0.25"}}'] == "0.0"
    assert found[f'cutwater_epoch_duration_seconds_bucket{{{flow},le="0.5"}}'] == "1.0"
    assert found[f'cutwater_epoch_duration_seconds_bucket{{{flow},le="+Inf"}}'] == "2.0"
    assert found[f"cutwater_epoch_duration_seconds_sum{{{flow}}}"] == "70.3"
    assert 'source="frame"' not in metrics.text()


def test_a_source_that_stands_still_falls_behind(metrics, clock):
    metrics.note(EPOCH)
    assert metrics.samples("cutwater_lag_seconds")[0].value == 30.0
    clock[0] += 60
    assert metrics.samples("cutwater_lag_seconds")[0].value == 90.0


def test_nothing_was_finished_yet(metrics):
    assert metrics.samples("cutwater_epochs")[0].value == 0
    assert "cutwater_epoch{" not in metrics.text()


def test_they_are_served_on_loopback(metrics):
    metrics.note(EPOCH)
    with serve(metrics, 0) as port:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=")
            assert answer.read().decode() == metrics.text()
        with pytest.raises(RunError, match="unusable-port"), serve(metrics, port):
            pass


def test_opentelemetry_has_the_same(metrics):
    export = pytest.importorskip("opentelemetry.sdk.metrics.export")
    from cutwater.spark.telemetry.otel import exporting

    reader = export.InMemoryMetricReader()
    with exporting(metrics, reader) as note:
        metrics.note(EPOCH)
        note(EPOCH)
        data = reader.get_metrics_data()
    found = {
        metric.name: metric.data.data_points[0]
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert found["cutwater.rows"].value == 5
    assert dict(found["cutwater.rows"].attributes) == {"flow": 'a "flow"\n', "sink": "out"}
    assert found["cutwater.epochs"].value == 1
    assert found["cutwater.lag.seconds"].value == 30.0
    assert found["cutwater.epoch.duration"].sum == 0.3


def test_opentelemetry_sends_them_to_a_collector(metrics, collector, monkeypatch):
    from cutwater.spark.telemetry.otel import exporting

    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "totals-in-production")
    with exporting(metrics) as note:
        metrics.note(EPOCH)
        note(EPOCH)
    (resource,) = collector.received[-1].resource_metrics
    attributes = {one.key: one.value.string_value for one in resource.resource.attributes}
    assert attributes["service.name"] == "totals-in-production"
    found = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
    (point,) = found["cutwater.rows"].sum.data_points
    assert (point.as_int or point.as_double) == 5
    assert found["cutwater.rows"].sum.is_monotonic
    assert found["cutwater.lag.seconds"].gauge.data_points[0].as_double == 30.0
    assert found["cutwater.epoch.duration"].histogram.data_points[0].sum == 0.3


@pytest.fixture
def collector():
    """Something that takes what the protocol OTLP/HTTP sends, and keeps it."""
    with Collector() as running:
        yield running


class Collector(http.server.ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Receiving)
        self.received = []
        self.address = f"http://127.0.0.1:{self.server_port}"
        self._thread = threading.Thread(target=self.serve_forever)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *raised):
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Receiving(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as protocol

        assert self.path == "/v1/metrics"
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.received.append(protocol.ExportMetricsServiceRequest.FromString(body))
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.end_headers()
        self.wfile.write(protocol.ExportMetricsServiceResponse().SerializeToString())

    def log_message(self, *_args):
        pass


def test_opentelemetry_is_asked_for_by_its_variables(monkeypatch):
    from cutwater.spark.telemetry import otel

    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    assert not otel.is_asked_for()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    assert otel.is_asked_for()
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    assert not otel.is_asked_for()


def test_a_log_has_a_line_for_each_event():
    file = io.StringIO()
    log = RunLog(file, "copy", now=lambda: 0.0)
    log.note(EPOCH)
    log.event("notice", text="waiting")
    log.fail(InputError(Problem("bad-record", "line 3 is canary", "correct it")))
    records = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [one["event"] for one in records] == ["epoch", "notice", "failed"]
    assert records[0]["at"] == "1970-01-01T00:00:00.000+00:00"
    assert (records[0]["epoch"], records[0]["rows"]) == (7, {"out": 5})
    assert records[0]["sources"]["in"]["lag_seconds"] == 30.0
    assert records[2]["codes"] == ["bad-record"]
    assert "canary" not in file.getvalue()


def test_a_log_is_appended_to_and_its_owners_alone(tmp_path):
    for _ in range(2):
        with logging_to(tmp_path / "run.jsonl", "copy") as log:
            log.event("started")
    assert len((tmp_path / "run.jsonl").read_text().splitlines()) == 2
    assert (tmp_path / "run.jsonl").stat().st_mode & 0o077 == 0
    with pytest.raises(RunError, match="unwritable-log"), logging_to(tmp_path, "copy"):
        pass
