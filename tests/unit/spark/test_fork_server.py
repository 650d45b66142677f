"""Processes that are forked instead of started must not differ from those that are started."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cutwater.spark import fork_client
from cutwater.spark.fork_server import start_fork_server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there it is used")

MODULE = """
import os, sys

if sys.argv[1] == "say":
    print(*sys.argv[1:], os.environ.get("SAID"), os.getcwd(), sys.path[0], __name__, hash("a"))
    print("to the other stream", file=sys.stderr)
elif sys.argv[1] == "echo":
    print(sys.stdin.read().upper())
elif sys.argv[1] == "exit":
    sys.exit(int(sys.argv[2]))
elif sys.argv[1] == "imported":
    print("pyspark.worker" in sys.modules, os.getppid(), len(os.listdir("/proc/self/task")))
elif sys.argv[1] == "kill":
    os.kill(os.getpid(), 9)
elif sys.argv[1] == "wait":
    print(os.getpid(), flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modules")
    (folder / "asked_for.py").write_text(MODULE)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One for all: it is there to be asked many times."""
    return start_fork_server(tmp_path_factory.mktemp("server"))


def command(python, *words):
    return [str(python), "-m", "asked_for", *words]


def run(python, place, *words, said="", **variables):
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(place), **variables}
    done = subprocess.run(
        command(python, *words),
        input=said,
        capture_output=True,
        text=True,
        cwd=place,
        env=environment,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [(("say", "this", "and that"), ""), (("echo",), "many words"), (("exit", "7"), "")],
)
def test_a_forked_process_is_as_one_that_is_started(server, place, words, said):
    started, forked = (
        run(python, place, *words, said=said, SAID="a=b=c") for python in (sys.executable, server)
    )
    assert forked == started


def test_it_has_everything_imported_and_one_thread(server, place):
    _, first, _ = run(server, place, "imported")
    _, second, _ = run(server, place, "imported")
    assert first == second
    assert first.startswith("True")
    assert first.endswith(" 1\n")
    assert int(first.split()[1]) != os.getpid()


def test_a_process_that_is_killed_is_told_as_one(server, place):
    assert run(server, place, "kill")[0] == 128 + signal.SIGKILL


def test_what_is_not_a_module_is_left_to_the_interpreter(server):
    done = subprocess.run([str(server), "-c", "print(1 + 1)"], capture_output=True, check=True)
    assert done.stdout == b"2\n"


def waiting(server, place):
    client = subprocess.Popen(
        command(server, "wait"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(place)},
    )
    return client, int(client.stdout.readline())


def wait_for_the_end_of(pid):
    while Path(f"/proc/{pid}").exists():
        time.sleep(0.005)


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
def test_who_ends_the_client_ends_the_process(server, place, sign):
    client, pid = waiting(server, place)
    client.send_signal(sign)
    wait_for_the_end_of(pid)
    client.communicate()
    assert client.returncode == -sign


def test_the_end_of_the_input_reaches_the_process(server, place):
    client, pid = waiting(server, place)
    client.communicate()
    assert client.returncode == 0
    assert not Path(f"/proc/{pid}").exists()


def test_without_a_server_the_interpreter_itself_runs(tmp_path, place):
    python = start_fork_server(tmp_path)
    server = int(run(python, place, "imported")[1].split()[1])
    os.kill(server, signal.SIGKILL)
    wait_until_ended(server)
    code, said, _ = run(python, place, "imported")
    assert code == 0
    assert said.startswith("False")


def test_a_server_that_ends_before_it_has_heard_is_no_server(tmp_path, place):
    """Who has connected meanwhile is in line and gets no answer."""
    address = str(tmp_path / "fork.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    asked = command(sys.executable, "exit", "3")
    client = subprocess.Popen([sys.executable, fork_client.__file__, address, *asked], cwd=place)
    connected, _ = listener.accept()
    listener.close()
    connected.close()
    assert client.wait() == 3


def test_the_server_ends_with_whoever_started_it(tmp_path, place):
    script = (
        "import os, pathlib, subprocess, sys\n"
        "from cutwater.spark.fork_server import start_fork_server\n"
        "python = start_fork_server(pathlib.Path(sys.argv[1]))\n"
        "said = subprocess.check_output([python, '-m', 'asked_for', 'imported'])\n"
        "print(said.split()[1].decode(), flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        capture_output=True,
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(place)},
        check=False,
    )
    wait_for_the_end_of(int(done.stdout))


def wait_until_ended(pid):
    """Of a child of this process, which stays in the list until it is waited for."""
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.005)
