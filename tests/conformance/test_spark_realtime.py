"""The command line in real time: several sources, levels and sinks of PostgreSQL.

Each run is a process of its own: a session for micro-batches has other settings.
"""

import json
import signal
from collections import Counter

import pytest
from support.faults.victims import start_cutwater, with_tests
from support.flows import clicks_and_views as job

import cutwater as cw
from cutwater.observers.postgres import PostgresObserver
from cutwater.testing.connectors.processes import kill_all, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FLOW = "support.flows.clicks_and_views:flow"


def write_config(folder, dsn):
    text = '[run]\ncheckpoint = "state"\nmode = "realtime"\n'
    for name in ("clicks", "views"):
        (folder / name).mkdir()
        text += f'[sources.{name}]\nkind = "json-lines"\npath = "{name}"\n'
    for name in ("windows", "pairs", "totals"):
        text += f'[sinks.{name}]\nkind = "postgres"\ntable = "{name}"\ndsn = "{dsn}"\n'
        text += "create = true\n"
    (folder / "run.toml").write_text(text)


def start(folder, *options):
    config = str(folder / "run.toml")
    return start_cutwater("run", FLOW, "--config", config, *options, **with_tests())


def put(folder, number, items):
    for name, values in items.items():
        lines = "".join(json.dumps(vars(value)) + "\n" for value in values)
        hidden = folder / name / f".{number}.jsonl"
        hidden.write_text(lines)
        hidden.rename(folder / name / f"{number}.jsonl")


def seen(dsn, table):
    return Counter(tuple(sorted(row.items())) for row in PostgresObserver(dsn, table).rows())


def test_a_flow_of_two_levels_stops_goes_on_and_closes(postgres, tmp_path):
    write_config(tmp_path, postgres.dsn)
    first, second = job.inputs(0, 60), job.inputs(60, 90)
    put(tmp_path, 0, first)
    process = start(tmp_path, "--until", "stopped")
    try:
        wait_until(process, lambda: _rows(postgres.dsn, "totals") >= 30)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=120)
    finally:
        kill_all(process)
    assert process.returncode == 0, err
    assert 'engine: real-time (mode = "realtime"): rows are released with their tick' in err
    assert "stopped, as requested" in out

    other = start(tmp_path, "--mode", "microbatch")
    _, err = other.communicate(timeout=120)
    assert other.returncode == 2
    assert "belongs to the real-time engine" in err

    put(tmp_path, 1, second)
    closing = start(tmp_path, "--close", "--json")
    out, err = closing.communicate(timeout=200)
    assert closing.returncode == 0, err
    simulated = cw.simulate(job.flow, {n: [*first[n], *second[n]] for n in first})
    for sink in simulated.events:
        wanted = Counter(tuple(sorted(vars(value).items())) for value in simulated[sink])
        assert seen(postgres.dsn, sink) == wanted, sink
    assert json.loads(out)["late"] == {"clicks": 0, "views": 0}


def _rows(dsn, table):
    try:
        return PostgresObserver(dsn, table).count()
    except Exception:  # the run makes the table
        return 0
