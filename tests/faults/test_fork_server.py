"""Processes that are forked instead of started must not differ from those that are started."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cutwater.spark.embedded.fork_server import start_fork_server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there it is used")

MODULE = """
import os, sys

if sys.argv[1] == "say":
    print(*sys.argv[1:], os.environ.get("SAID"), os.environ.get("with-a.dot"), os.getcwd())
    print(sys.path[:2], __name__, hash("a"))
    print("to the other stream", file=sys.stderr)
elif sys.argv[1] == "echo":
    print(sys.stdin.read().upper())
elif sys.argv[1] == "exit":
    sys.exit(int(sys.argv[2]))
elif sys.argv[1] == "imported":
    names = ("pyspark.worker", "numpy", "numpy.random")
    print(os.getppid(), len(os.listdir("/proc/self/task")), *(n in sys.modules for n in names))
elif sys.argv[1] == "leave":
    print("printed before it ended")
    os._exit(0)
elif sys.argv[1] == "clock":
    import time
    print(time.tzname)
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
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONUNBUFFERED", raising=False)
        python = start_fork_server(tmp_path_factory.mktemp("server"))
    assert python != sys.executable
    return python


def command(python, *words):
    return [str(python), "-m", "asked_for", *words]


def run(python, place, *words, stdin="", **variables):
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(place), **variables}
    done = subprocess.run(
        command(python, *words),
        input=stdin,
        capture_output=True,
        text=True,
        cwd=place,
        env=environment,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("words", "stdin"),
    [
        (("say", "this", "and that"), ""),
        (("echo",), "many words"),
        (("exit", "7"), ""),
        (("leave",), ""),
        (("clock",), ""),
    ],
)
def test_a_forked_process_is_as_one_that_is_started(server, place, words, stdin):
    given = {"SAID": "a=b=c", "TZ": "Asia/Tokyo", "PYTHONUNBUFFERED": "YES", "with-a.dot": "1"}
    started, forked = (
        run(python, place, *words, stdin=stdin, **given) for python in (sys.executable, server)
    )
    assert forked == started


def test_it_has_everything_imported_and_one_thread(server, place):
    _, first, _ = run(server, place, "imported")
    _, second, _ = run(server, place, "imported")
    assert first == second, "they have one parent"
    parent, *rest = first.split()
    assert int(parent) != os.getpid()
    assert rest == ["1", "True", "True", "False"], "random numbers would be the same in all"


def test_a_process_that_is_killed_is_reported_as_one(server, place):
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
    server = int(run(python, place, "imported")[1].split()[0])
    os.kill(server, signal.SIGKILL)
    wait_until_ended(server)
    code, stdout, _ = run(python, place, "imported")
    assert code == 0
    assert stdout.split()[2] == "False"


def test_a_server_that_ends_before_it_answers_is_no_server(tmp_path, place):
    """Who has connected meanwhile is in line and gets no answer."""
    address = str(tmp_path / "fork.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    asked = command(sys.executable, "exit", "3")
    script = f"from cutwater.spark.embedded.fork_client import main; main({address!r}, *{asked!r})"
    client = subprocess.Popen([sys.executable, "-c", script], cwd=place)
    connected, _ = listener.accept()
    listener.close()
    connected.close()
    assert client.wait() == 3


def test_a_process_outlives_whoever_started_the_server_and_can_still_be_ended(tmp_path, place):
    """As the JVM does, for a moment, when the driver is killed."""
    script = (
        "import pathlib, subprocess, sys\n"
        "from cutwater.spark.embedded.fork_server import start_fork_server\n"
        "python = start_fork_server(pathlib.Path(sys.argv[1]))\n"
        "subprocess.run([python, '-m', 'asked_for', 'exit', '0'])\n"
        "print(python, flush=True)\n"
        "sys.stdin.read()\n"
    )
    driver = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(place)},
    )
    client, pid = waiting(driver.stdout.readline().strip(), place)
    driver.kill()
    driver.communicate()
    assert client.poll() is None
    assert Path(f"/proc/{pid}").exists()
    client.terminate()
    wait_for_the_end_of(pid)
    client.communicate()


def test_the_driver_ends_while_a_process_of_its_own_lives(tmp_path):
    """Which has what the server waits for the end of."""
    script = (
        "import multiprocessing.pool, pathlib, sys\n"
        "from cutwater.spark.embedded.fork_server import start_fork_server\n"
        "start_fork_server(pathlib.Path(sys.argv[1]))\n"
        "pool = multiprocessing.get_context('fork').Pool(1)\n"
        "print('done')\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True)
    assert done.stdout == b"done\n"


def test_the_server_ends_with_whoever_started_it(tmp_path, place):
    script = (
        "import os, pathlib, subprocess, sys\n"
        "from cutwater.spark.embedded.fork_server import start_fork_server\n"
        "python = start_fork_server(pathlib.Path(sys.argv[1]))\n"
        "out = subprocess.check_output([python, '-m', 'asked_for', 'imported'])\n"
        "print(out.split()[0].decode(), flush=True)\n"
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
