"""The bodies of rows for sinks: orders, and values as the sink takes them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from cutwater.annotations import describe, is_known
from cutwater.codec import codec_of
from cutwater.errors import FlowError, InputError, Problem, StepError
from cutwater.flow.lowering import not_as_annotated
from cutwater.round_trip import misfit
from cutwater.spark.connectors.base.sink import Lane
from cutwater.spark.exchange.batch import Batch
from cutwater.spark.exchange.columns import RecordCodec, Records, joined_values, record_codec
from cutwater.spark.exchange.envelope import pack_lines, unpack_lines
from cutwater.spark.job.spec import Job

__all__ = ["lane_of", "lines_of_values", "packing"]

_UNFIT = (TypeError, ValueError, OverflowError, RecursionError)
"""What an encoder raises for a value that it cannot encode."""
_json = msgspec.json.Encoder().encode
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(tuple[list[bytes], bytes]).decode


def packing(job: Job, target: int) -> Callable[[Batch], bytes]:
    """How the values of a batch become the body of a row for a sink."""
    if job.log_into(job.sink_at(target)):
        lines = job.log_lines[job.sink_at(target)]
        return lambda batch: pack_lines(replace(batch, values=lines.written(batch)))
    if not _takes_records(job, target):
        look = _judge(job, target)

        def pack_as_lines(batch: Batch) -> bytes:
            look(batch.values)
            return pack_lines(replace(batch, values=lines_of_values(batch.values)))

        return pack_as_lines
    codec = record_codec(job.type_of_sink(target))

    def pack(batch: Batch) -> bytes:
        try:
            encoded = codec.encode(Records.of(codec.layout, batch.values))
        except _UNFIT as error:
            raise _no_record(job, target, codec, batch.values, error) from None
        return _pack((batch.orders, encoded))

    return pack


def _judge(job: Job, target: int) -> Callable[[Sequence[Any]], None]:
    """Raises for values that the annotation of the function that made them does not allow."""
    name = job.sink_at(target)
    numbers = [number for step, number in job.plan.sinks if step.name == name]
    segment = job.plan.segments[numbers[0]] if numbers else None
    if segment is None or segment.maker is None or not is_known(segment.output.value):
        return lambda _values: None
    maker, tp = segment.maker, segment.output.value
    try:
        codec = codec_of(list[tp])  # type: ignore[valid-type]
    except FlowError:  # nothing can be told of what has no encoding
        return lambda _values: None

    def look(values: Sequence[Any]) -> None:
        if isinstance(values, Records):
            return
        try:
            codec.decode(codec.encode(values))
        except (*_UNFIT, InputError):
            found = next((loss for value in values if (loss := misfit(value, tp))), None)
            if found is not None:
                raise StepError(not_as_annotated(maker, tp, found)) from None

    return look


def lane_of(job: Job, target: int, label: int, bodies: list[bytes]) -> Lane:
    """What the bodies of all rows of a bucket hold for a sink, in order; they are used up."""
    unpack = _unpacking(job, target)
    bodies.reverse()
    parts = []
    while bodies:  # packed and unpacked they would be there twice
        parts.append(unpack(bodies.pop()))
    orders = [order for part, _ in parts for order in part]
    values = joined_values([part for _, part in parts])
    if all(map(operator.le, orders, orders[1:])):
        return Lane(label, orders, values)
    places = sorted(range(len(orders)), key=orders.__getitem__)
    taken = (
        values.take(places)
        if isinstance(values, Records)
        else list(map(values.__getitem__, places))
    )
    return Lane(label, list(map(orders.__getitem__, places)), taken)


def _takes_records(job: Job, target: int) -> bool:
    return job.sinks[job.sink_at(target)].takes == "records"


def _unpacking(job: Job, target: int) -> Callable[[bytes], tuple[list[bytes], Sequence[Any]]]:
    if not _takes_records(job, target):
        return unpack_lines
    codec = record_codec(job.type_of_sink(target))

    def unpack(body: bytes) -> tuple[list[bytes], Records]:
        orders, records = _unpack(body)
        try:
            return orders, codec.decode(records)
        except msgspec.ValidationError as error:
            raise _not_declared(job, target, error) from None

    return unpack


def _no_record(
    job: Job, target: int, codec: RecordCodec, values: Sequence[Any], error: Exception
) -> InputError:
    """What is said of the first value that cannot be sent to a sink."""
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
            f"{_shortened(found)} cannot be sent to sink '{job.sink_at(target)}': {error}",
            "map it to values that can be encoded before the sink: whole numbers of 64 bits, "
            "text that is Unicode, and not too deep",
        )
    )


def _not_declared(job: Job, target: int, error: Exception) -> InputError:
    tp = describe(job.type_of_sink(target))
    return InputError(
        Problem(
            "no-record",
            f"sink '{job.sink_at(target)}' was given a value that is no {tp}: {error}",
            "correct the annotations of the step before the sink, or what it returns",
        )
    )


def _shortened(value: Any) -> str:
    try:
        said = ascii(value)
    except RecursionError:
        return f"a {type(value).__name__}"
    return said if len(said) <= 200 else f"{said[:200]}… ({len(said)} characters)"


def lines_of_values(values: Sequence[Any]) -> list[bytes]:
    """A line of JSON for each value."""
    try:
        return [_json(value) + b"\n" for value in values]
    except _UNFIT:
        return list(map(_line, values))  # which says what failed


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
