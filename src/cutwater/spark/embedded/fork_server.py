"""Python processes of Spark on this machine, forked from one that has imported everything.

A run needs about ten Python processes before its first row, most of them in sequence: planners,
readers, workers, the writer. Each would import pyspark, numpy, pyarrow and this package again,
which takes longer than all the rest of its start. So a server imports them once, while the JVM
starts, and what Spark runs as the interpreter (`fork_client`) asks it for a fork.

Nothing depends on it: without a server, every process is started as usual.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import re
import resource
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cutwater.spark.embedded import fork_client, jvm

__all__ = ["ForkServer", "ProcessRequest", "start_fork_server"]

_IMPORTED = (
    "pyspark.daemon",
    "pyspark.worker",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.streaming.transform_with_state_driver_worker",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "pyspark.sql.worker.write_into_data_source",
    "cutwater.spark.microbatch.stateful_operator",
    "cutwater.spark.microbatch.source_reader",
    "cutwater.spark.microbatch.writer",
)
_SINGLE_THREAD = {"OMP_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Only a process with one thread can be forked safely, and these keep libraries from starting one
when they are imported. Spark gives its workers one thread for arithmetic, too."""
_AS_SPARK_HAS_IT = {"PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "YES"}
"""What Spark sets for its Python processes, and an interpreter reads only when it starts."""
_LINE = re.compile(r"\S{1,100}")
"""An interpreter that can be named in the first line of a script."""
_PATIENCE_SECONDS = 10.0
"""How long to wait for the rest of a request: no other client is served meanwhile."""


def start_fork_server(folder: Path) -> str:
    """Start a server that ends with this process; returns what to run as the interpreter.

    That is the interpreter itself if files in the folder cannot be executed.
    """
    interpreter = folder / "python"
    interpreter.write_text(f"#!{sys.executable} -IS\n{Path(fork_client.__file__).read_text()}")
    interpreter.chmod(0o700)
    if not os.access(interpreter, os.X_OK) or not _LINE.fullmatch(sys.executable):
        return sys.executable
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "fork.sock"))
        listener.listen(64)
        server = subprocess.Popen(
            [sys.executable, "-m", __name__, str(listener.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            start_new_session=True,
            env={**_AS_SPARK_HAS_IT, **os.environ, **_SINGLE_THREAD},
        )
    jvm.set_fork_server(server)
    atexit.register(_let_go, server)
    return str(interpreter)


def _let_go(server: subprocess.Popen[bytes]) -> None:
    """End the server when it is no longer needed; the JVM may need it a moment longer."""
    assert server.stdin
    server.stdin.close()


@dataclass(frozen=True)
class ProcessRequest:
    """A process that is asked for."""

    arguments: list[str]
    """The arguments of the interpreter: ``-m MODULE ...``."""
    folder: str
    environment: dict[bytes, bytes]

    @classmethod
    def read_from(cls, client: socket.socket, streams: list[int]) -> ProcessRequest:
        """What a client wants; the streams that it hands over are added to those given."""
        with client.makefile("rb", buffering=0) as stream:
            length = int.from_bytes(_exactly(stream.read, 8), "big")
            count, *rest = _exactly(stream.read, length).split(b"\0")
        _, handed_over, _, _ = socket.recv_fds(client, 1, 3)
        streams += handed_over
        if len(streams) != 3:
            raise ValueError("the client has ended")
        arguments, (folder, *variables) = rest[: int(count)], rest[int(count) :]
        pairs = (variable.partition(b"=") for variable in variables)
        return cls(
            [os.fsdecode(argument) for argument in arguments],
            os.fsdecode(folder),
            {name: value for name, _, value in pairs},
        )

    def fulfil(self) -> None:
        """Run as the process that was asked for, until it exits."""
        os.chdir(self.folder)
        os.environb.clear()
        os.environb.update(self.environment)
        if self.arguments[:1] != ["-m"]:
            os.execv(sys.executable, [sys.executable, *self.arguments])
        _, module, *given = self.arguments
        with contextlib.suppress(OSError):
            Path("/proc/self/comm").write_text(self.arguments[-1][-15:])  # for lists of processes
        time.tzset()
        self._find_modules()
        sys.argv = [module, *given]
        sys.modules.pop(module, None)  # it was imported only to preload what it imports
        runpy.run_module(module, run_name="__main__", alter_sys=True)

    def _find_modules(self) -> None:
        """Search for modules where a new interpreter would."""
        places = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        here = [] if sys.flags.safe_path else [self.folder]
        known = sys.path[len(here) :]
        sys.path[:] = [*here, *(p for p in places if p and p not in known), *known]
        importlib.invalidate_caches()


class ForkServer:
    """Forks for every client, and reports the end of its process."""

    def __init__(self, listener: socket.socket, lifeline: int) -> None:
        """`lifeline` can be read from when no more clients will come."""
        self._listener = listener
        self._lifeline = lifeline
        self._waiting = selectors.DefaultSelector()
        self._waiting.register(lifeline, selectors.EVENT_READ, self._close)
        self._waiting.register(listener, selectors.EVENT_READ, self._accept)

    def serve(self) -> ProcessRequest | None:
        """Wait for clients; returns the request in a forked process, in the server None."""
        while self._waiting.get_map():
            for key, _ in self._waiting.select():
                react: Callable[[], ProcessRequest | None] = key.data
                if (request := react()) is not None:
                    return request
        return None

    def _close(self) -> None:
        """Accept no more clients; forked processes are still waited for."""
        self._waiting.unregister(self._lifeline)
        self._waiting.unregister(self._listener)
        self._listener.close()

    def _accept(self) -> ProcessRequest | None:
        try:
            client, _ = self._listener.accept()
        except OSError:  # the client is gone
            return None
        client.settimeout(_PATIENCE_SECONDS)
        streams: list[int] = []
        request, process = None, -1
        try:
            request = ProcessRequest.read_from(client, streams)
            process = os.fork()
            if process > 0:
                self._look_after(process, client)
        except (OSError, ValueError):  # it is gone or not ours, or no process can be forked
            client.close()
        if process == 0:
            self._leave_to_the_server(client)
            for place, stream in enumerate(streams):
                os.dup2(stream, place)
        for stream in streams:
            os.close(stream)
        return request if process == 0 else None

    def _look_after(self, process: int, client: socket.socket) -> None:
        """Report to a client that it has a process, and wait until either exits."""
        try:
            ended = os.pidfd_open(process)
            client.sendall(b"\0")
        except OSError:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            raise
        wait = partial(self._waiting.register, events=selectors.EVENT_READ)
        wait(ended, data=partial(self._end, process, ended, client))
        wait(client, data=partial(self._end_early, process, client))

    def _end(self, process: int, ended: int, client: socket.socket) -> None:
        """Report to a client that its process has exited."""
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        self._waiting.unregister(ended)
        os.close(ended)
        if client.fileno() >= 0:
            self._waiting.unregister(client)
            with client, contextlib.suppress(OSError):
                client.sendall(bytes([code if code >= 0 else 128 - code]))

    def _end_early(self, process: int, client: socket.socket) -> None:
        """Spark has killed the client, and knows only that process."""
        if client.fileno() >= 0:
            self._waiting.unregister(client)
            client.close()
            os.kill(process, signal.SIGTERM)

    def _leave_to_the_server(self, client: socket.socket) -> None:
        """In a forked process, close what belongs to the server."""
        for key in self._waiting.get_map().values():
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
            else:
                os.close(key.fd)
        self._waiting.close()
        client.close()


def _exactly(read: Callable[[int], bytes | None], length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = read(length - len(data))
        if not more:
            raise ValueError("the client has ended")
        data += more
    return data


def _main(descriptor: int) -> None:
    for module in _IMPORTED:
        importlib.import_module(module)
    gc.freeze()  # what is collected here would be copied by every process
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # as the JVM does, and its children
    os.close(os.pidfd_open(os.getpid()))  # not every system has it
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        return
    request = ForkServer(socket.socket(fileno=descriptor), sys.stdin.fileno()).serve()
    if request is not None:
        request.fulfil()


if __name__ == "__main__":
    _main(int(sys.argv[1]))
