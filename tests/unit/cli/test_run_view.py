"""What a run shows while it runs, and how it is asked to stop."""

import logging
import os
import signal
import threading

import pytest
from rich.console import Console

from cutwater.cli import run_view as views
from cutwater.cli.commands import run
from cutwater.cli.run_view import RunView, plain_line, run_view
from cutwater.cli.stopping import stops_asked_for
from cutwater.endings import exit_code

spark = pytest.importorskip("cutwater.spark")


def epoch(number, **more):
    source = spark.SourceProgress(50, "bytes", 3, 3, more.pop("lag", None))
    return spark.RunProgress(
        number, 200, rows={"out": 10}, sources={"in": source}, state_bytes=2048, **more
    )


def test_a_line_says_what_matters():
    clock = iter([0.0, 1.0, 3.0])
    view = RunView("copy", lambda: next(clock))
    assert plain_line(view) == "copy: no epoch yet"
    view.note(epoch(0))
    assert (
        plain_line(view) == "copy: epoch 0, 50 rows/s, 200 ms (median 200 ms), in at 3, state 2 KiB"
    )
    view.note(epoch(1, lag=1.26, late=3))
    view.note(epoch(2, lag=1.26, bad_records=4))
    assert plain_line(view) == (
        "copy: epoch 2, 7 rows/s, 200 ms (median 200 ms), in 1.3 s behind, state 2 KiB, 3 late, "
        "4 bad"
    )


def test_a_line_says_which_step_is_held_by_what():
    slow, fast = spark.Position("in", "3"), spark.Position("in", "0")
    source = spark.SourceProgress(positions=(fast, slow))
    frontiers = {
        "hourly": spark.FrontierProgress(None, 90.0, (fast,)),
        "daily": spark.FrontierProgress(None, float("inf"), (slow,)),
    }
    view = RunView("copy")
    view.note(spark.RunProgress(0, 200, sources={"in": source}, frontiers=frontiers))
    assert ", daily held by in[3], " in plain_line(view)
    view.note(
        spark.RunProgress(1, 200, sources={"in": spark.SourceProgress()}, frontiers=frontiers)
    )
    assert "held by" not in plain_line(view)


@pytest.mark.parametrize("lag", [None, 90.0])
def test_a_line_says_that_a_loop_holds_a_step_even_with_one_source(lag):
    """Whether or not times are of the clock; a source alone holds everything, and is not named."""
    only, loop = spark.Position("in"), spark.Position("descend", is_loop=True)
    frontiers = {
        "hourly": spark.FrontierProgress(3, lag and 2 * lag, (only,)),
        "windows": spark.FrontierProgress(3, lag, (loop,)),
    }
    sources = {"in": spark.SourceProgress(positions=(only,))}
    view = RunView("copy")
    view.note(spark.RunProgress(0, 200, sources=sources, frontiers=frontiers))
    assert ", windows held by descend, " in plain_line(view)
    del frontiers["windows"]
    view.note(spark.RunProgress(1, 200, sources=sources, frontiers=frontiers))
    assert "held by" not in plain_line(view)


def iterating(*steps):
    """A run with a loop that iterates, which is the first step that waits."""
    only, loop = spark.Position("in"), spark.Position("descend", is_loop=True)
    frontiers = {name: spark.FrontierProgress(None, None, (loop,)) for name in ("descend", *steps)}
    sources = {"in": spark.SourceProgress(positions=(only,))}
    view = RunView("copy")
    view.note(spark.RunProgress(0, 200, sources=sources, frontiers=frontiers))
    return view


def test_a_loop_is_not_said_to_be_held_by_itself():
    assert ", windows held by descend, " in plain_line(iterating("windows"))
    alone = plain_line(iterating())
    assert ", descend still iterates, " in alone
    assert "held by" not in alone


def test_a_terminal_says_which_loop_iterates_and_what_it_holds(monkeypatch, capsys):
    monkeypatch.setattr(
        views, "errors", Console(stderr=True, force_terminal=True, width=100, color_system=None)
    )
    with run_view("copy") as view:
        view.note(iterating("windows").last)
    shown = [" ".join(line.split()) for line in capsys.readouterr().err.splitlines()]
    assert "descend nothing complete still iterates" in shown
    assert "windows nothing complete held by descend" in shown


def test_a_line_says_if_a_snapshot_is_old_or_fails():
    view = RunView("copy", lambda: 0.0)
    view.note(epoch(7, snapshot=spark.SnapshotProgress(5, 6.0, 5.0)))
    assert plain_line(view).startswith("copy: tick 7, ")
    assert ", latency 200 ms (median 200 ms)" in plain_line(view)
    assert "snapshot" not in plain_line(view)
    view.note(epoch(8, snapshot=spark.SnapshotProgress(5, 16.0, 5.0)))
    assert plain_line(view).endswith(", snapshot 16 s old")
    view.note(epoch(9, snapshot=spark.SnapshotProgress(-1, 6.0, 5.0, 1, "No space left")))
    assert plain_line(view).endswith(", snapshot none yet, the next failed: No space left")


def test_a_lag_of_days_is_reported_in_days():
    view = RunView("copy", lambda: 0.0)
    view.note(epoch(0, lag=86_400 * 321.0))
    assert "in 321 days behind" in plain_line(view)


def test_lines_come_every_few_seconds(monkeypatch, capsys):
    console = Console(stderr=True, force_terminal=False)
    monkeypatch.setattr(views, "errors", console)
    clock = [0.0]
    with run_view("copy", lambda: clock[0]) as view:
        for number in range(13):
            view.note(epoch(number))
            clock[0] += 1.0
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == "copy: starting"
    assert [line.split(",")[0] for line in shown[1:]] == ["copy: epoch 5", "copy: epoch 10"]


def test_a_terminal_has_a_table(monkeypatch, capsys):
    console = Console(stderr=True, force_terminal=True, width=100, color_system=None)
    monkeypatch.setattr(views, "errors", console)
    with run_view("[red]copy[/red]") as view:
        frontiers = {
            "hourly": spark.FrontierProgress(None, None, (spark.Position("in"),)),
            "daily": spark.FrontierProgress(7, None, (spark.Position("in"),)),
        }
        view.note(epoch(41, late=1, frontiers=frontiers))
        view.notify("a notice")
    shown = capsys.readouterr().err
    assert "None" not in shown
    for words in ("nothing complete", "complete to 7"):
        assert words in shown
    for words in ("[red]copy[/red] is running", "41", "10 to out", "1 late", "a notice", "2 KiB"):
        assert words in shown


def test_the_first_signal_asks_and_the_second_interrupt_cuts_off():
    told = []
    before = signal.getsignal(signal.SIGTERM)
    with stops_asked_for(told.append, 240.0, cut_off=lambda: told.append("cut off")) as stops:
        assert not stops.is_asked()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stops.is_asked()
        os.kill(os.getpid(), signal.SIGTERM)
        assert not stops.is_interrupted
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert stops.is_interrupted
    assert told.pop() == "cut off"
    assert told == ["SIGTERM: the epoch that is running is finished first; Ctrl-C cuts it off"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_stop_says_what_happens_before_the_end():
    told = []
    with stops_asked_for(told.append, 240.0, first="what was read is released"):
        os.kill(os.getpid(), signal.SIGTERM)
    assert told == ["SIGTERM: what was read is released first; Ctrl-C cuts it off"]


def test_a_run_that_is_to_stop_is_cut_off_when_its_time_is_over():
    cut = threading.Event()
    with stops_asked_for(lambda _: None, stop_timeout_s=0.0, cut_off=cut.set) as stops:
        os.kill(os.getpid(), signal.SIGTERM)
        assert cut.wait(60)
        assert stops.is_late
        assert not stops.is_interrupted
    (problem,) = stops.late().problems
    assert problem.code == "stop-timeout"
    assert exit_code(stops.late()) == 1


def test_what_py4j_logs_of_a_broken_connection_is_not_shown():
    of_py4j, of_others = (
        logging.LogRecord("root", logging.ERROR, f"/lib/{name}/gateway.py", 1, "x", (), None)
        for name in ("py4j", "mine")
    )
    assert not run._is_not_of_py4j(of_py4j)
    assert run._is_not_of_py4j(of_others)
