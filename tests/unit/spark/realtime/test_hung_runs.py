"""A sink that hangs ends a real-time run by `hung_after`, also while the run is asked to stop."""

from types import SimpleNamespace

import pytest

from cutwater.errors import ResourceError
from cutwater.spark.embedded.watchdog import Watchdog
from cutwater.spark.realtime.drive import RealTimeDrive
from cutwater.spark.stopping import StopRequest

HUNG_AFTER_S = 20.0


class Once:
    """An event of the watchdog's thread: one tick passes, and then the thread has ended."""

    def __init__(self):
        self.ticks = 1

    def wait(self, _seconds):
        self.ticks -= 1
        return self.ticks < 0


class Run:
    """A query in which a tick of the watchdog's passes between two looks; nobody waits for real."""

    def __init__(self, root, released, is_to_stop=False):
        self.root, self.passed, self.released, self.cut = root, 0, released, []
        self.watchdog = Watchdog(HUNG_AFTER_S, lambda: self.cut.append(self.passed))
        self.drive = RealTimeDrive(
            None, SimpleNamespace(is_ending=False), SimpleNamespace(root=root),
            claim_again=None, on_progress=print, is_to_stop=lambda: is_to_stop, notify=print,
            watchdog=self.watchdog, snapshot_s=1.0, batch_s=60.0, readers=1,
        )  # fmt: skip

    def watch(self):
        opening = SimpleNamespace(
            released=lambda: self.released(self.passed),
            planned=lambda: 100,
            sources=["s"],
            snapshots=SimpleNamespace(common=lambda: 5),
        )
        reports = SimpleNamespace(report=lambda: None)
        self.drive._watch(self, opening, "stopped", reports)

    def awaitTermination(self, _seconds):
        self.passed += 1
        self.watchdog._count(Once())
        return self.passed > 200


@pytest.mark.parametrize("is_to_stop", [False, True], ids=["running", "stopping"])
def test_a_sink_that_hangs_ends_the_run(tmp_path, is_to_stop):
    """The sinks are at tick 7 for ever; a stop does not wait for them without end."""
    run = Run(tmp_path, lambda passed: min(passed, 7), is_to_stop)
    StopRequest(tmp_path).see("s")
    with pytest.raises(ResourceError, match="hung"):
        run.watch()
    assert run.cut == [7 + 20]
    assert StopRequest(tmp_path).is_made() == is_to_stop


def test_a_run_whose_sinks_go_on_is_not_mistaken_for_hung(tmp_path):
    run = Run(tmp_path, lambda passed: passed // 15)
    run.watch()
    assert run.passed > 200
    assert run.cut == []
