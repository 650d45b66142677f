"""The bodies of rows for sinks: orders, and values as the sink accepts them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from cutwater.annotations import is_known, typename
from cutwater.codec import codec_of
from cutwater.errors import FlowError, InputError, Problem, StepError
from cutwater.flow.fusing import Plan
from cutwater.flow.lowering import not_as_annotated
from cutwater.round_trip import first_misfit
from cutwater.spark.connectors.base.sink import BucketRows
from cutwater.spark.exchange.batch import EventBatch
from cutwater.spark.exchange.columns import RecordCodec, Records, joined_values, record_codec
from cutwater.spark.exchange.envelope import (
    pack_lines,
    pack_number,
    split_input_epoch,
    unpack_lines,
)
from cutwater.spark.exchange.log_lines import with_input_epoch
from cutwater.spark.job.spec import Job

__all__ = ["bucket_rows", "lines_of_values", "packing"]

_UNFIT = (TypeError, ValueError, OverflowError, RecursionError)
"""What an encoder raises for a value that it cannot encode."""
_json = msgspec.json.Encoder().encode
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(tuple[list[bytes], bytes]).decode


def packing(job: Job, target: int) -> Callable[[EventBatch], bytes]:
    """A function that encodes a batch as the body of a row for a sink.

    It raises for a value that cannot be encoded or does not fit its annotation.
    """
    sink = job.addresses.sink_at(target)
    if job.loops.log_into(sink):
        lines = job.codecs.log_lines[sink]
        return lambda batch: pack_lines(replace(batch, values=lines.written(batch)))
    if job.sinks[sink].accepts != "records":
        look = _judge(job.plan, sink)

        def pack_as_lines(batch: EventBatch) -> bytes:
            look(batch.values)
            return pack_lines(replace(batch, values=lines_of_values(batch.values)))

        return pack_as_lines
    codec = record_codec(job.addresses.type_of_sink(target))

    def pack(batch: EventBatch) -> bytes:
        try:
            encoded = codec.encode(Records.of(codec.layout, batch.values))
        except _UNFIT as error:
            raise _no_record(sink, codec, batch.values, error) from None
        return _pack((batch.orders, encoded))

    return pack


def _judge(plan: Plan, sink: str) -> Callable[[Sequence[Any]], None]:
    """A function that raises `StepError` for values that violate the annotation of their maker."""
    numbers = [number for step, number in plan.sinks if step.name == sink]
    segment = plan.segments[numbers[0]] if numbers else None
    if segment is None or segment.maker is None or not is_known(segment.output.value):
        return lambda _values: None
    maker, tp = segment.maker, segment.output.value
    try:
        codec = codec_of(list[tp])  # type: ignore[valid-type]
    except FlowError:  # values of a type without encoding cannot be checked
        return lambda _values: None

    def look(values: Sequence[Any]) -> None:
        if isinstance(values, Records):
            return
        try:
            codec.decode(codec.encode(values))
        except (*_UNFIT, InputError):
            found = next((loss for value in values if (loss := first_misfit(value, tp))), None)
            if found is not None:
                raise StepError(not_as_annotated(maker, tp, found)) from None

    return look


def bucket_rows(job: Job, target: int, label: int, bodies: list[bytes]) -> BucketRows:
    """The rows of a bucket for a sink, in order; empties `bodies`."""
    unpack = _unpacking(job, target)
    bodies.reverse()
    parts = []
    while bodies:  # freed one by one, else memory would hold packed and unpacked rows
        parts.append(unpack(bodies.pop()))
    orders = [order for part, _ in parts for order in part]
    values = joined_values([part for _, part in parts])
    if all(map(operator.le, orders, orders[1:])):
        return BucketRows(label, orders, values)
    indices = sorted(range(len(orders)), key=orders.__getitem__)
    taken = (
        values.take(indices)
        if isinstance(values, Records)
        else list(map(values.__getitem__, indices))
    )
    return BucketRows(label, list(map(orders.__getitem__, indices)), taken)


def _unpacking(job: Job, target: int) -> Callable[[bytes], tuple[list[bytes], Sequence[Any]]]:
    if target in job.loops.inside:
        return _unpack_of_input
    sink, tp = job.addresses.sink_at(target), job.addresses.type_of_sink(target)
    if job.sinks[sink].accepts != "records":
        return unpack_lines
    codec = record_codec(tp)

    def unpack(body: bytes) -> tuple[list[bytes], Records]:
        orders, records = _unpack(body)
        try:
            return orders, codec.decode(records)
        except msgspec.ValidationError as error:
            raise _not_declared(sink, tp, error) from None

    return unpack


def _unpack_of_input(body: bytes) -> tuple[list[bytes], list[bytes]]:
    """Orders and lines for the log of a loop; they sort by input epoch first."""
    number, rest = split_input_epoch(body)
    orders, lines = unpack_lines(rest)
    before = pack_number(number)
    return [before + order for order in orders], [with_input_epoch(line, number) for line in lines]


def _no_record(
    sink: str, codec: RecordCodec, values: Sequence[Any], error: Exception
) -> InputError:
    """The error for the first value that cannot be encoded for a sink."""
    found: Any = values
    for value in values:
        try:
            codec.encode(Records.of(codec.layout, [value]))
        except _UNFIT as reason:
            found, error = value, reason
            break
    return InputError(
        Problem(
            "no-record",
            f"{_shortened(found)} cannot be sent to sink '{sink}': {error}",
            "map it to values that can be encoded before the sink: whole numbers of 64 bits, "
            "valid Unicode text, and not nested too deeply",
        )
    )


def _not_declared(sink: str, tp: Any, error: Exception) -> InputError:
    return InputError(
        Problem(
            "no-record",
            f"sink '{sink}' got a value that does not fit {typename(tp)}: {error}",
            "correct the annotations of the step before the sink, or what it returns",
        )
    )


def _shortened(value: Any) -> str:
    try:
        literal = ascii(value)
    except RecursionError:
        return f"a {type(value).__name__}"
    return literal if len(literal) <= 200 else f"{literal[:200]}… ({len(literal)} characters)"


def lines_of_values(values: Sequence[Any]) -> list[bytes]:
    """One line of JSON per value; raises `InputError` if one cannot be encoded."""
    try:
        return [_json(value) + b"\n" for value in values]
    except _UNFIT:
        return list(map(_line, values))  # raises with the cause


def _line(value: Any) -> bytes:
    try:
        return _json(value) + b"\n"
    except _UNFIT as error:
        raise InputError(
            Problem(
                "not-json",
                f"{repr(value)[:200]} cannot be written to a sink as JSON: {error}",
                "map it to a dataclass or to builtin values before the sink",
            )
        ) from None
