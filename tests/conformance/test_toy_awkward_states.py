"""Awkward states on our runtime: what the simulator refuses comes back changed, or ends the run.

Each task of the catalogue runs in the simulator and in the runtime. Where the runtime has no
sentence of its own, it shows in the next epoch what became of the state.
"""

from __future__ import annotations

import msgspec
import pytest
from support.flows.awkward_states import (
    EMITTING,
    PATHS,
    Item,
    Two,
    flow_of,
    items,
    shared_list,
)
from support.spark.agreement import parts_of
from support.spark.toy_spark import ToySpark, make_job

import cutwater as cw
from cutwater.errors import CutwaterError, StepError, extract
from cutwater.spark.job.spec import spark_plan
from cutwater.spark.support import check_support

ITEMS = [Item("a", 1), Item("a", 2), Item("a", 3)]

ENDS_A_RUN = {
    "large_number": "lost-in-a-snapshot",
    "lone_surrogate": "lost-in-a-snapshot",
    "plain_class": "type-without-encoding",
    "refused_again": "lost-in-a-snapshot",
    "out_of_bounds": "lost-in-a-snapshot",
    "deep_in_a_field": "lost-in-a-snapshot",
    "deque_in_list": "lost-in-a-snapshot",
    "emits_another_type": "not-as-annotated",
    "emits_another_class": "not-as-annotated",
}
"""Tasks that end a run, and the code of the sentence."""
GOES_ON_WITH = {
    "extra_attribute": [1, 1, 1],  # it was to count
    "subclass": [0, 0, 0],
    "int_in_float": ["0.0", "1.0", "2.0"],
    "zoned": [
        "2024-03-31T12:00:00+02:00",
        "2024-04-01T10:00:00+00:00",
        "2024-04-02T10:00:00+00:00",
    ],
    "tuple_in_list": ["list", "list", "list"],
    "counter_in_dict": ["dict", "dict", "dict"],
    "defaultdict_in_dict": ["dict", "dict", "dict"],
    "ordered_in_dict": ["dict", "dict", "dict"],
    "records_in_a_bare_tuple": ["Item", "dict", "dict"],
    "made_again": [1, 2, 3],  # each recovery makes it once more
    "raised_again": [1, 2, 3],
    "seeded_again": [0, 5, 10],
    "float_in_decimal": ["Decimal('0')", "Decimal('1.5')", "Decimal('3.0')"],
}
"""What the others show, each event in an epoch of its own: the state as the codec gives it back."""


def name_of(value):
    return value.name if isinstance(value, cw.Task) else ""


def run(task, root):
    """What the sink shows, each event in an epoch of its own."""
    flow = flow_of(task)
    check_support(spark_plan(flow))
    job = make_job(flow, root, max_bytes_per_epoch=1)
    lines = b"".join(msgspec.json.encode(item) + b"\n" for item in ITEMS)
    (root / "in" / "items" / "0").write_bytes(lines)
    with pytest.MonkeyPatch.context() as patch:
        ToySpark(job, patch, 1).run_to_the_end(["never"])
    shown = parts_of(job.sinks["out"].root)
    assert sorted(shown) == [0, 1, 2]
    return [msgspec.json.decode(line) for n in sorted(shown) for part in shown[n] for line in part]


@pytest.mark.parametrize(("task", "_message"), [*PATHS, *EMITTING], ids=name_of)
def test_what_the_simulator_refuses_the_runtime_ends_on_or_gives_back_changed(
    task, _message, tmp_path
):
    with pytest.raises(StepError) as refused:
        cw.simulate(flow_of(task), {"items": items()})
    assert refused.value.problems[0].code in ("lost-in-a-snapshot", "not-as-annotated")
    if task.name in ENDS_A_RUN:
        with pytest.raises((CutwaterError, RuntimeError)) as ended:
            run(task, tmp_path)
        found = ended.value if isinstance(ended.value, CutwaterError) else extract(str(ended.value))
        assert found.problems[0].code == ENDS_A_RUN[task.name]
        return
    assert run(task, tmp_path) == GOES_ON_WITH[task.name]


def test_what_the_simulator_takes_is_the_same(tmp_path):
    """A part that is shared is two in the next epoch, on both."""
    given = [thing for item in ITEMS for thing in (item, cw.BARRIER)]
    shown = run(shared_list, tmp_path)
    assert shown == cw.simulate(flow_of(shared_list), {"items": given})["out"]
    assert shown[-1] == repr(Two([1, 2, 3], [1]))
