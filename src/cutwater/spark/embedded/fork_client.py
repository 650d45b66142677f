"""Runs in place of the Python interpreter, and asks the fork server for a process.

The server's folder has a copy of this file that can be run. It imports the standard library alone,
so that it starts within milliseconds. Its standard streams become those of the process that it
gets; it waits for that process and exits with its exit code. Without a server it becomes the
interpreter that was asked for.
"""

import os
import socket
import sys

__all__ = ["main"]


def main(address: str, python: str, *arguments: str) -> int:
    """Run ``python ARGUMENTS...``, by the server if there is one; returns the exit code."""
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(address)
        server.sendall(_request(arguments))
        socket.send_fds(server, [b"\0"], [0, 1, 2])
        has_answer = bool(server.recv(1))
    except OSError:
        has_answer = False
    if not has_answer:
        os.execv(python, [python, *arguments])
    code = server.recv(1)
    return code[0] if code else 1


def _request(arguments: tuple[str, ...]) -> bytes:
    """Arguments, folder and environment, prefixed by the length of all three."""
    variables = [name + b"=" + value for name, value in os.environb.items()]
    request = [str(len(arguments)), *arguments, os.getcwd()]  # noqa: PTH109 (an import less)
    data = b"\0".join([*map(os.fsencode, request), *variables])
    return len(data).to_bytes(8, "big") + data


if __name__ == "__main__":
    _beside = os.path.join(os.path.dirname(__file__), "fork.sock")  # noqa: PTH118, PTH120
    sys.exit(main(_beside, sys.executable, *sys.argv[1:]))
