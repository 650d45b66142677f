"""A way to a broker on which the end of a transaction may be late.

It knows as much of Kafka's protocol as it needs: requests and answers begin with their length; a
request goes on with its API key. Where answers tell the broker's address, it puts its own.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator

END_TXN = 26
HOST = "127.0.0.1"


class EndTxnProxy:
    """Passes requests on, and can hold an EndTxn back while its client believes it was lost."""

    def __init__(self, servers: str) -> None:
        self._port = int(servers.rpartition(":")[2])
        self._listener = socket.create_server((HOST, 0))
        self._own_port = self._listener.getsockname()[1]
        self.servers = f"{HOST}:{self._own_port}"
        self.holds_next_end = False
        """The next EndTxn is held back, and its connection to the client is cut."""
        self._late: list[tuple[socket.socket, bytes]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def held(self) -> int:
        """How many are held back now."""
        return len(self._late)

    def let_go(self) -> None:
        """Let the broker have what was held back; return when it has answered."""
        for server, request in self._late:
            server.sendall(request)
            assert _frame(server)
            server.close()
        self._late.clear()

    def close(self) -> None:
        self._listener.close()
        for server, _ in self._late:
            server.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection((HOST, self._port))
        except OSError:  # the broker is down, and so is the way to it
            client.close()
            return
        with client, server:
            answers = threading.Thread(target=self._answer, args=(client, server), daemon=True)
            answers.start()
            with contextlib.suppress(OSError):
                self._ask(client, server)
            for end in (client, server):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            answers.join()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        while request := _frame(client):
            if self.holds_next_end and int.from_bytes(request[4:6], "big") == END_TXN:
                self.holds_next_end = False
                self._late.append((socket.create_connection((HOST, self._port)), request))
                return
            server.sendall(request)

    def _answer(self, client: socket.socket, server: socket.socket) -> None:
        address, own = (
            HOST.encode() + port.to_bytes(4, "big") for port in (self._port, self._own_port)
        )
        with contextlib.suppress(OSError):
            while answer := _frame(server):
                client.sendall(answer.replace(address, own))
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


def _frame(sock: socket.socket) -> bytes:
    """One request or answer, with its length; nothing at the end."""
    head = _exactly(sock, 4)
    return head + _exactly(sock, int.from_bytes(head, "big")) if head else b""


def _exactly(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = sock.recv(count - len(data))
        if not more:
            return b""
        data += more
    return data


@contextlib.contextmanager
def end_txn_proxy(servers: str) -> Iterator[EndTxnProxy]:
    """A proxy in front of a broker of this machine."""
    proxy = EndTxnProxy(servers)
    try:
        yield proxy
    finally:
        proxy.close()
