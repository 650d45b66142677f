"""A run ends in time and with a message if what it depends on dies, hangs or is unreachable."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.endings.supervisor import supervise
from support.faults.victims import Victim, write_inputs

from cutwater.testing.connectors.processes import children, descendants, kill_all, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]
OWN_SESSION = Path(__file__).parents[1] / "support" / "faults" / "own_session.py"
HUNG_AFTER_S = 30
"""Longer than a start takes on a busy machine."""


@pytest.fixture
def victim(tmp_path):
    return Victim(tmp_path / "victim", write_inputs(tmp_path / "inputs", seed=1, epochs=12))


def processes(process, name):
    """The processes of a run that run such a program."""
    found = []
    for pid in descendants(process.pid):
        try:
            comm = Path(f"/proc/{pid}/comm").read_text().strip()
        except OSError:
            continue
        if name in comm:
            found.append(pid)
    return found


def running(victim, *more):
    process = victim.start("--until", "stopped", *more)
    wait_until(process, lambda: len(victim.epochs()) >= 2)
    return process


def sentence_of(process, code, seconds=300):
    try:
        _, stderr = process.communicate(timeout=seconds)
    finally:
        kill_all(process)
    assert process.returncode == code, stderr
    assert "Traceback" not in stderr
    return stderr


def test_a_killed_jvm_is_a_sentence_and_the_supervisor_starts_it_again(victim):
    starts = []

    def start():
        process = victim.start()
        try:
            if not starts:
                wait_until(process, lambda: len(victim.epochs()) >= 2)
                (jvm,) = [p for p in children()[process.pid] if p in processes(process, "java")]
                os.kill(jvm, signal.SIGKILL)
            starts.append(process)
            _, stderr = process.communicate(timeout=600)
        finally:
            kill_all(process)
        return process.returncode, stderr

    service = supervise(start)
    assert service.codes == [1, 0], service.messages
    assert "[jvm-died] the JVM of the run was killed by SIGKILL" in service.messages[0]
    assert "Traceback" not in service.messages[0]
    written = (victim.inputs / "readings" / "1.jsonl").read_bytes().splitlines()
    assert sum(map(len, victim.seen().values())) == len(written)


def test_a_frozen_jvm_is_cut_off_when_the_time_to_stop_is_over(victim):
    process = running(victim, "--stop-timeout", "3")
    jvms = processes(process, "java")
    for pid in jvms:
        os.kill(pid, signal.SIGSTOP)
    process.send_signal(signal.SIGTERM)
    assert "[stop-timeout]" in sentence_of(process, 1, seconds=60)
    assert not [pid for pid in jvms if Path(f"/proc/{pid}").exists()]
    victim.finish()


def test_the_second_interrupt_ends_a_run_whose_jvm_is_frozen(victim):
    process = running(victim)
    for pid in processes(process, "java"):
        os.kill(pid, signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    threading.Event().wait(1)  # so that they are two signals and not one
    process.send_signal(signal.SIGINT)
    sentence_of(process, 130, seconds=60)
    victim.finish()


def workers(process):
    """The Python workers of tasks, without the daemons that fork them."""
    named = processes(process, "pyspark.worker")
    return [pid for daemon in named for pid in children().get(daemon, []) if pid in named]


HANGING = {
    "workers": workers,
    "planners": lambda process: processes(process, "source_runner"),
    "the JVM": lambda process: processes(process, "java"),
}


@pytest.mark.parametrize("who", HANGING)
def test_a_run_that_hangs_is_cut_off_and_goes_on_when_it_is_started_again(victim, who):
    process = running(victim, "--hung-after", str(HUNG_AFTER_S))
    try:
        paused = HANGING[who](process)
        assert paused
        for pid in paused:
            os.kill(pid, signal.SIGSTOP)
    except BaseException:
        kill_all(process)
        raise
    stderr = sentence_of(process, 1, seconds=240)
    assert "[hung]" in stderr
    assert not [pid for pid in paused if Path(f"/proc/{pid}").exists()]
    victim.finish()


def test_a_run_that_waits_for_input_does_not_hang(victim):
    """For twice as long as nothing may go on; then it is fed, and reads on."""
    process = running(victim, "--hung-after", str(HUNG_AFTER_S))
    try:
        wait_until(process, lambda: len(victim.commits()) >= 12)
        threading.Event().wait(2 * HUNG_AFTER_S)
        before = len(victim.epochs())
        more = {"sensor": "s1", "at": 10**9, "value": 1.0}
        (victim.inputs / "readings" / "2.jsonl").write_text(json.dumps(more) + "\n")
        wait_until(process, lambda: len(victim.epochs()) > before)
        process.send_signal(signal.SIGTERM)
        sentence_of(process, 0)
    finally:
        kill_all(process)


def test_a_hanging_run_on_a_session_of_the_users_leaves_that_session_alone(tmp_path):
    done = subprocess.run(
        [sys.executable, str(OWN_SESSION), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert "[hung]" in done.stdout
    assert "the session answers: 3" in done.stdout


def test_a_server_that_is_down_at_the_start_is_waited_for(victim, tmp_path, postgres):
    """Down for a while: the same command goes on. Down for good: 1, and a sentence."""
    postgres.execute("CREATE TABLE IF NOT EXISTS down (sensor text, at bigint, mean float)")
    config = tmp_path / "run.toml"
    config.write_text(
        f'[sources.readings]\nkind = "json-lines"\npath = "{victim.inputs}/readings"\n'
        f'[sources.resets]\nkind = "json-lines"\npath = "{victim.inputs}/resets"\n'
        f'[sinks.means]\nkind = "postgres"\ntable = "down_means"\ncreate = true\n'
        f'dsn = "{postgres.dsn}"\n'
    )
    flow = Path(__file__).parents[2] / "examples" / "averages.py"
    command = [sys.executable, "-c", "from cutwater.cli import main; main()", "run"]
    command += [f"{flow}:flow", "--config", str(config), "--checkpoint", str(victim.checkpoint)]

    def start():
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    postgres.stop()
    try:
        assert "[database-unavailable]" in sentence_of(start(), 1)
        process = start()
    finally:
        threading.Event().wait(5)
        postgres.start()
    sentence_of(process, 0, seconds=600)
