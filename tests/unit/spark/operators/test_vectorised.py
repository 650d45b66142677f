"""States of vectorised tasks kept before a field was added, and the messages of errors."""

from dataclasses import dataclass, field

import msgspec
import pytest
from support.flows.vector_tasks import Reading, flow_of, returns_too_few, takes_one_at_a_time
from support.spark.toy_spark import ToySpark, make_job

from cutwater.errors import extract
from cutwater.spark.operators.vectorised import _convert
from cutwater.vectors import Layout


class Kept(msgspec.Struct):
    count: int
    share: float = 0.5
    names: list[str] = []
    sizes: list[int] = msgspec.field(default_factory=lambda: [7])


@dataclass(frozen=True)
class KeptAsData:
    count: int
    share: float = 0.5
    names: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=lambda: [7])


@pytest.mark.parametrize("state", [Kept, KeptAsData])
def test_new_fields_have_their_default(state):
    converted = _convert(Layout.of(state))({"count": [1, 2]})
    assert converted == {
        "count": [1, 2],
        "share": [0.5, 0.5],
        "names": [[], []],
        "sizes": [[7], [7]],
    }
    first, second = converted["sizes"]
    assert first is not second


READINGS = [Reading("a", 1.0), Reading("a", 2.0)]


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (
            takes_one_at_a_time,
            "raised KeyError: 'more than one'; it was given a batch of 2 events of 1 key",
        ),
        (returns_too_few, "the output that 'returns_too_few' returned has 1 element, not 2"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_what_goes_wrong_with_a_batch_is_reported(tmp_path, monkeypatch, task, message):
    job = make_job(flow_of(task), tmp_path, max_bytes_per_epoch=1 << 20)
    lines = b"".join(msgspec.json.encode(reading) + b"\n" for reading in READINGS)
    (tmp_path / "in" / "readings" / "1.jsonl").write_bytes(lines)
    with pytest.raises(RuntimeError) as error:
        ToySpark(job, monkeypatch, seed=1).run_to_the_end([])
    assert message in str(extract(str(error.value)))
