"""A way to a server that can be cut, swallow everything, or be slow."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator


class CuttingProxy:
    """Passes on what it gets on a port of its own; cuts a connection when told to."""

    def __init__(self, port: int, at: int = 0) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", at))
        self.port = self._listener.getsockname()[1]
        self.cuts_after: bytes | None = None
        """When a client sends this, the server gets it and answers, and nobody hears it."""
        self.cuts = 0
        self.delay_seconds = 0.0
        """The delay of each piece of data, either way: a slow link."""
        self._clients: list[tuple[socket.socket, threading.Thread]] = []
        self._is_open = threading.Event()
        self._is_open.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def swallow(self) -> None:
        """From now on nothing gets through, and nobody is told: a black hole without a reset."""
        self._is_open.clear()

    def let_through(self) -> None:
        """What was held back goes on."""
        self._is_open.set()

    def close(self) -> None:
        self._is_open.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # else `accept` keeps the port
        self._listener.close()
        for client, thread in self._clients:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
            thread.join()

    def _carry(self) -> None:
        self._is_open.wait()
        if self.delay_seconds:
            time.sleep(self.delay_seconds)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._connect(self._listener.accept()[0])

    def _connect(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._target)
        except OSError:  # the server is down, and so is the way to it
            client.close()
            return
        thread = threading.Thread(target=self._ask, args=(client, server), daemon=True)
        self._clients.append((client, thread))
        thread.start()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        answers = threading.Thread(target=self._answer, args=(server, client), daemon=True)
        answers.start()
        with client, server, contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                if self.cuts_after and self.cuts_after in data:
                    self.cuts_after = None
                    self._lose_the_answer(client, server, data)
                    return
                self._carry()
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)
            answers.join()

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                self._carry()
                client.sendall(data)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def _lose_the_answer(self, client: socket.socket, server: socket.socket, data: bytes) -> None:
        self.cuts += 1
        client.shutdown(socket.SHUT_RDWR)
        server.sendall(data)
        server.shutdown(socket.SHUT_WR)  # it does what it was asked before it sees the end


@contextlib.contextmanager
def cutting_proxy(port: int, at: int = 0) -> Iterator[CuttingProxy]:
    """A proxy in front of a port of this machine, at a port that is given or any."""
    proxy = CuttingProxy(port, at)
    try:
        yield proxy
    finally:
        proxy.close()
