"""Every row of the table of exit codes, under a supervisor that restarts on 1 and gives up on 2."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.endings import failing_run
from support.endings.kinds import AGAIN, KINDS
from support.endings.supervisor import supervise

from cutwater import endings

TESTS = Path(__file__).parents[2]
FAILURES = 2
"""So many starts fail before the trouble is over by itself."""


@pytest.fixture(scope="module")
def service():
    """Starts runs that fail, each in a process of its own."""
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        [sys.executable, failing_run.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "NO_COLOR": "1"},
    ) as process:
        yield process
        process.stdin.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_supervisor_brings_back_what_can_come_back(kind, tmp_path, service):
    def start():
        service.stdin.write(json.dumps([kind, FAILURES, str(tmp_path)]) + "\n")
        service.stdin.flush()
        return int(service.stdout.readline()), (tmp_path / "output").read_text()

    supervised = supervise(start)
    expected = [AGAIN] * FAILURES + [0] if KINDS[kind].code == AGAIN else [KINDS[kind].code]
    assert supervised.codes == expected, supervised.messages
    for message in supervised.messages[: -1 if supervised.is_up else None]:
        assert message.count("error: [") == 1
        assert "Traceback" not in message


def test_no_row_of_the_tables_is_without_a_kind():
    rows = [f"errno-{errno.errorcode[number]}" for number in endings._OF_THE_USER]
    rows += [f"postgres-{state}" for state in endings._SQLSTATES]
    rows += [f"kafka-{name}" for names in endings._KAFKA.values() for name in names.split()]
    rows += [f"delta-status-{status}" for status in endings._HTTP_AGAIN]
    assert not [row for row in rows if not any(kind.startswith(row) for kind in KINDS)]


def test_each_of_several_problems_is_an_error_of_its_own(cli, write):
    write(
        """
        import cutwater as cw

        flow = cw.Flow("wrong")
        flow.source("words", str).key_by("a").map(len).sink("out")
        flow.source("more", str).key_by("b").map(len).sink("others")
        """
    )
    done = cli("check", "job.py:flow")
    assert done.code == 2
    assert done.err.count("error: [") == done.err.count("  hint: ") == 2
