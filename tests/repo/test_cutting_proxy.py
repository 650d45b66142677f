"""A proxy outlives its server, and leaves its port behind."""

import socket

from support.connectors.cutting_proxy import cutting_proxy

HOST = "127.0.0.1"
PATIENCE_S = 20
"""What hangs is a failure."""


def ask(port):
    """Connect and be answered; nothing where the other end hangs up."""
    with socket.create_connection((HOST, port), timeout=PATIENCE_S) as client:
        return client.recv(5)


def answer(server):
    server.settimeout(PATIENCE_S)
    connection, _ = server.accept()
    with connection:
        connection.sendall(b"hello")


def free_port():
    with socket.create_server((HOST, 0)) as server:
        return server.getsockname()[1]


def pass_through(proxy, server):
    """Connect through a proxy, and hear what the server says."""
    with socket.create_connection((HOST, proxy.port), timeout=PATIENCE_S) as client:
        answer(server)
        assert client.recv(5) == b"hello"


def test_a_server_that_was_down_is_reached_when_it_is_back():
    port = free_port()
    with cutting_proxy(port) as proxy:
        assert ask(proxy.port) == b""
        with socket.create_server((HOST, port)) as server:
            pass_through(proxy, server)


def test_another_proxy_can_stand_at_the_same_port():
    own = free_port()
    with socket.create_server((HOST, 0)) as server:
        for _ in range(3):
            with cutting_proxy(server.getsockname()[1], at=own) as proxy:
                pass_through(proxy, server)
