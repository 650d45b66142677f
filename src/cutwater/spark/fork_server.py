"""Python processes of Spark on this machine, forked from one that has imported everything.

A run needs about ten Python processes before its first row is out, most of them one after the
other: planners, readers, workers, the writer. Each would import pyspark, numpy, pyarrow and this
package anew, which takes longer than all the rest of its start. So a server imports them once,
while the JVM starts, and what Spark takes for the interpreter (`fork_client`) asks it for a copy.

Nothing depends on it: where there is no server, every process is started as usual.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import runpy
import selectors
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cutwater.spark import fork_client

__all__ = ["ForkServer", "Request", "start_fork_server"]

_IMPORTED = (
    "pyspark.daemon",
    "pyspark.worker",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.streaming.transform_with_state_driver_worker",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "pyspark.sql.worker.write_into_data_source",
    "cutwater.spark.level",
    "cutwater.spark.sources.reader",
    "cutwater.spark.writer",
)
_SINGLE_THREAD = {"OMP_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Only a process with one thread can be forked safely, and these keep libraries from starting one
when they are imported. Spark gives its workers one thread for arithmetic, too."""
_PATIENCE_SECONDS = 10.0


def start_fork_server(folder: Path) -> Path:
    """Start a server that ends with this process; the path of what to run as the interpreter."""
    address = folder / "fork.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen(64)
        server = subprocess.Popen(
            [sys.executable, "-m", __name__, str(listener.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            start_new_session=True,
            # Spark has all its processes hash alike, unless it is told how.
            env={"PYTHONHASHSEED": "0", **os.environ, **_SINGLE_THREAD},
        )
    atexit.register(server.communicate)
    words = [sys.executable, "-I", "-S", fork_client.__file__, str(address), sys.executable]
    interpreter = folder / "python"
    interpreter.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    interpreter.chmod(0o700)
    return interpreter


@dataclass(frozen=True)
class Request:
    """A process that is asked for."""

    arguments: list[str]
    """What the interpreter would be given: ``-m MODULE ...``."""
    folder: str
    environment: dict[bytes, bytes]

    @classmethod
    def read_from(cls, client: socket.socket) -> tuple[Request, list[int]]:
        """What a client wants, and the streams that it hands over."""
        with client.makefile("rb", buffering=0) as stream:
            length = int.from_bytes(_exactly(stream.read, 8), "big")
            count, *rest = _exactly(stream.read, length).split(b"\0")
        _, streams, _, _ = socket.recv_fds(client, 1, 3)
        arguments, (folder, *variables) = rest[: int(count)], rest[int(count) :]
        pairs = (variable.partition(b"=") for variable in variables)
        request = cls(
            [os.fsdecode(argument) for argument in arguments],
            os.fsdecode(folder),
            {name: value for name, _, value in pairs},
        )
        return request, list(streams)

    def fulfil(self) -> None:
        """Be the process that was asked for, to its end."""
        os.chdir(self.folder)
        os.environb.clear()
        os.environb.update(self.environment)
        if self.arguments[:1] != ["-m"]:
            os.execv(sys.executable, [sys.executable, *self.arguments])
        _, module, *given = self.arguments
        Path("/proc/self/comm").write_text(
            self.arguments[-1][-15:]
        )  # what a list of processes says
        places = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[:1] = [self.folder, *(p for p in places if p and p not in sys.path)]
        sys.argv = [module, *given]
        sys.modules.pop(module, None)  # it was imported for what it imports
        runpy.run_module(module, run_name="__main__", alter_sys=True)


class ForkServer:
    """Forks for every client, and tells it of the end of its process."""

    def __init__(self, listener: socket.socket, lifeline: int) -> None:
        """`lifeline` can be read from when the server is to end."""
        self._listener = listener
        self._waiting = selectors.DefaultSelector()
        self._waiting.register(lifeline, selectors.EVENT_READ)
        self._waiting.register(listener, selectors.EVENT_READ, self._accept)

    def serve(self) -> Request | None:
        """Wait for clients; in a forked process what it shall be, in the server None at last."""
        while True:
            for key, _ in self._waiting.select():
                react: Callable[[], Request | None] | None = key.data
                if react is None:
                    return None
                if (request := react()) is not None:
                    return request

    def _accept(self) -> Request | None:
        client, _ = self._listener.accept()
        client.settimeout(_PATIENCE_SECONDS)
        try:
            request, streams = Request.read_from(client)
            client.sendall(b"\0")
        except (OSError, ValueError):  # it is gone, or was never one of ours
            client.close()
            return None
        process = os.fork()
        if process == 0:
            self._leave_to_the_server(client)
            for place, stream in enumerate(streams):
                os.dup2(stream, place)
        for stream in streams:
            os.close(stream)
        if process == 0:
            return request
        ended = os.pidfd_open(process)
        wait = partial(self._waiting.register, events=selectors.EVENT_READ)
        wait(ended, data=partial(self._end, process, ended, client))
        wait(client, data=partial(self._end_early, process, client))
        return None

    def _end(self, process: int, ended: int, client: socket.socket) -> None:
        """Tell a client that its process has ended."""
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        self._waiting.unregister(ended)
        os.close(ended)
        if client.fileno() >= 0:
            self._waiting.unregister(client)
            with client, contextlib.suppress(OSError):
                client.sendall(bytes([code if code >= 0 else 128 - code]))

    def _end_early(self, process: int, client: socket.socket) -> None:
        """Spark has ended the client, which is all it knows of the process."""
        if client.fileno() >= 0:
            self._waiting.unregister(client)
            client.close()
            os.kill(process, signal.SIGTERM)

    def _leave_to_the_server(self, client: socket.socket) -> None:
        """Close, in a forked process, what is the server's."""
        for key in self._waiting.get_map().values():
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
            elif key.data is not None:
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
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        return
    request = ForkServer(socket.socket(fileno=descriptor), sys.stdin.fileno()).serve()
    if request is not None:
        request.fulfil()


if __name__ == "__main__":
    _main(int(sys.argv[1]))
