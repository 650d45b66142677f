"""What a JVM died of, in a sentence with the setting to change; a small process stands for it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cutwater.spark.embedded import jvm


def ended(script):
    """A process that has ended, as a JVM of ours would."""
    process = subprocess.Popen(["sh", "-c", script], start_new_session=True)
    process.wait(60)
    return process


@pytest.mark.parametrize(
    ("script", "code", "words", "hint"),
    [
        ("kill -KILL $$", "jvm-died", "killed by SIGKILL", "spark.driver.memory"),
        ("kill -TERM $$", "jvm-died", "ended by SIGTERM", "KillMode=mixed"),
        ("exit 143", "jvm-died", "ended by SIGTERM", "KillMode=mixed"),
        ("exit 137", "jvm-died", "killed by SIGKILL", "spark.driver.memory"),
        ("exit 255", "jvm-died", "ended with exit code 255", "jvm.log"),
        ("kill -SEGV $$", "jvm-died", "ended by SIGSEGV", "hs_err_pid"),
        ("exit 1", "jvm-died", "ended with exit code 1", "jvm.log"),
        ("exit 3", "jvm-out-of-memory", "no memory left", "spark.driver.memory"),
        ("exit 52", "jvm-out-of-memory", "no memory left", "spark.driver.memory"),
    ],
)
def test_the_cause_is_named(tmp_path, script, code, words, hint):
    problem = jvm.death_of(ended(script), tmp_path)
    assert problem.code == code
    assert words in problem.message
    assert hint in problem.hint


def test_what_its_log_says_last_is_quoted(tmp_path):
    (tmp_path / "jvm.log").write_text("first\nthe last words\n\n")
    assert "jvm.log ends with: the last words" in jvm.death_of(ended("exit 1"), tmp_path).message


@pytest.mark.parametrize("name", ["jvm.log", "spark.log"])
@pytest.mark.parametrize(
    "kind",
    [
        "java.lang.OutOfMemoryError: Java heap space",
        "org.apache.arrow.memory.OutOfMemoryException: Failure allocating buffer.",
    ],
)
def test_which_memory_was_exhausted_is_reported(tmp_path, name, kind):
    (tmp_path / name).write_text(f"Terminating due to {kind}\n")
    assert f"({kind})" in jvm.out_of_memory(tmp_path).message


def test_a_log_of_any_bytes_is_read(tmp_path):
    (tmp_path / "jvm.log").write_bytes(b"\xff\xfe" * 100_000)
    assert jvm.death_of(ended("exit 1"), tmp_path).code == "jvm-died"


def test_one_that_lives_has_died_of_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(jvm, "_DYING_S", 0.01)
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        try:
            assert jvm.death_of(process, tmp_path) is None
        finally:
            process.kill()


def test_only_our_own_is_killed_with_its_group_even_if_it_is_frozen(monkeypatch):
    monkeypatch.setattr(jvm, "_own", None)
    assert not jvm.kill_own()
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        process.send_signal(signal.SIGSTOP)
        jvm.set_own(process)
        assert jvm.kill_own()
        assert process.wait(60) == -signal.SIGKILL
    assert not jvm.kill_own()


def test_python_processes_are_killed_too_in_whatever_group_they_are(monkeypatch):
    """One of each session is paused in a group of its own; the server that forks is left."""
    script = "import os, sys; os.fork() or os.setpgid(0, 0); os.write(1, b'%d\\n' % os.getpid()); "
    sessions = [
        subprocess.Popen(
            [sys.executable, "-c", script + "sys.stdin.read()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        for _ in range(2)
    ]
    java, server = sessions
    monkeypatch.setattr(jvm, "_own", java)
    monkeypatch.setattr(jvm, "_fork_server", server)
    printed = [{int(each.stdout.readline()) for _ in range(2)} for each in sessions]
    forked = [
        pid for each, pids in zip(sessions, printed, strict=True) for pid in pids if pid != each.pid
    ]
    assert len(forked) == 2
    for pid in forked:
        os.kill(pid, signal.SIGSTOP)
    try:
        assert jvm.kill_own()
        assert java.wait(60) == -signal.SIGKILL
        assert server.poll() is None
        deadline = time.monotonic() + 60
        while any(map(is_running, forked)):
            assert time.monotonic() < deadline
    finally:
        for each in sessions:
            each.kill()
            each.communicate()


def is_running(pid):
    """Is it there, and no mere entry for whoever waits for its end?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
