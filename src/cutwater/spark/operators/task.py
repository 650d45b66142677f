"""The work of a segment whose only state is that of one task: where most flows spend their time.

No step of it reacts to watermarks, barriers or the end of the input, and outputs have the time and
key of their cause. So values are not wrapped in events, and the states that an epoch needs are
decoded before it and encoded after it, all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cutwater.codec import codec_of
from cutwater.errors import CutwaterError, StepError
from cutwater.flow import steps as s
from cutwater.flow.by_value import by_value, is_by_value
from cutwater.flow.fusing import Segment
from cutwater.flow.lowering import named, step_failed
from cutwater.operators.task import check_result, fresh_copies
from cutwater.spark.exchange.batch import EventBatch
from cutwater.spark.exchange.envelope import ShuffleWriter
from cutwater.spark.exchange.router import Sender
from cutwater.spark.job.spec import Job
from cutwater.spark.operators.segment_runner import SegmentRunner, error_at, packed_in_pieces
from cutwater.spark.state.bucket import BucketStates
from cutwater.spark.state.storage import encode_states

__all__ = ["TaskRunner", "only_task"]


def only_task(segment: Segment) -> s.Apply | None:
    """The task of a segment whose other steps are stateless; None if it is not such a segment."""
    stateful = [part.step for part in segment.parts if not is_by_value(part.step)]
    if len(stateful) == 1 and isinstance(stateful[0], s.Apply) and stateful[0].expire_after is None:
        return stateful[0]
    return None


class TaskRunner(SegmentRunner):
    """Runs such a segment on one bucket."""

    def __init__(
        self,
        job: Job,
        segment: Segment,
        step: s.Apply,
        bucket: BucketStates,
        shuffle: ShuffleWriter,
    ) -> None:
        self._job = job
        self._segment = segment
        self._step = step
        self._bucket = bucket
        self._codec = codec_of(step.task.state_type)
        self._sender = Sender(job, segment, shuffle)

    def data(self, bodies: Sequence[bytes]) -> Iterator[None]:
        for piece in packed_in_pieces(self._job, self._segment, bodies, self._bucket.label):
            self._piece(*piece)
            yield

    def _piece(self, batch: EventBatch, firsts: list[int]) -> None:
        batch.keys = self._job.codecs.event_codecs[self._segment.number].keys_of(batch)
        states = self._states(batch.key_bytes)
        steps = [part.step for part in self._segment.parts]
        run = _run_alone if len(steps) == 1 else _run_among(steps)
        outputs: list[Sequence[Any]] = []
        try:
            run(self._step, batch.key_bytes, batch.values, states, outputs)
        except StepError as error:
            raise error_at(error, batch, len(outputs)) from error.__cause__
        self._keep(states)
        self._sender.values(batch, outputs, firsts if self._segment.reads_twice else None)

    def _states(self, keys: Sequence[bytes]) -> dict[bytes, Any]:
        """The states of the keys, decoded; None where there is none."""
        held, decode = self._bucket.states_of(self._step.name), self._codec.decode
        found = {key: held.get(key) for key in dict.fromkeys(keys)}
        return {key: None if data is None else decode(data) for key, data in found.items()}

    def _keep(self, states: dict[bytes, Any]) -> None:
        encoded = encode_states(self._step, self._codec, list(states.values()))
        self._bucket.put_many(self._step.name, list(states), encoded)


def _run_alone(
    step: s.Apply,
    keys: Sequence[bytes],
    values: Sequence[Any],
    states: dict[bytes, Any],
    outputs: list[Sequence[Any]],
) -> None:
    """Append the outputs of a task for each value, and update `states`."""
    f, name, fresh = step.task.f, step.name, fresh_copies(step.task.initial)
    state = value = None
    try:
        for key, value in zip(keys, values, strict=True):
            state = states[key]
            if state is None:
                state = fresh()
            result = f(state, value)
            if type(result) is not tuple or len(result) != 2 or type(result[1]) is not list:
                result = check_result(result, name)
            states[key] = result[0]
            outputs.append(result[1])
    except CutwaterError:
        raise
    except (Exception, SystemExit) as error:
        raise step_failed(step, (state, value), error) from error


_Run = Callable[
    [s.Apply, Sequence[bytes], Sequence[Any], dict[bytes, Any], list[Sequence[Any]]], None
]


def _run_among(steps: Sequence[s.Step]) -> _Run:
    """The same for a task with other steps before and after it."""

    def run(
        step: s.Apply,
        keys: Sequence[bytes],
        values: Sequence[Any],
        states: dict[bytes, Any],
        outputs: list[Sequence[Any]],
    ) -> None:
        index = steps.index(step)
        before, after = by_value(steps[:index]), by_value(steps[index + 1 :])
        fresh = fresh_copies(step.task.initial)
        call = named(step, lambda state, value: check_result(step.task.f(state, value), step.name))
        for key, value in zip(keys, values, strict=True):
            state = states[key]
            emitted: list[Any] = []
            for item in before(value):
                state, more = call(fresh() if state is None else state, item)
                emitted += [output for each in more for output in after(each)]
            states[key] = state
            outputs.append(emitted)

    return run
