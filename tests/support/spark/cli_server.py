"""Run commands of the command line in one process that lives on, so that its JVM does too."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str


class CliServer:
    """A process that runs one command after the other."""

    def __init__(self, temporary: str) -> None:
        self.temporary = temporary
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "NO_COLOR": "1", "COLUMNS": "80", "TMPDIR": temporary},
            text=True,
        )

    def __call__(self, *arguments: str | Path) -> Done:
        """Run a command to its end."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([str(argument) for argument in arguments]) + "\n")
        self._process.stdin.flush()
        return Done(**json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End the process, and the JVM with it."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        try:
            self._process.wait(timeout=120)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


@contextlib.contextmanager
def cli_server() -> Iterator[CliServer]:
    """A server that is closed in any case."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        server = CliServer(temporary)
        try:
            yield server
        finally:
            server.close()


def run_command(arguments: list[str]) -> Done:
    """Run a command in this process."""
    from cutwater.cli import main

    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as left:
            code = left.code
        except BaseException:
            code = 1
            traceback.print_exc()
    return Done(
        code if isinstance(code, int) else int(code is not None), out.getvalue(), err.getvalue()
    )


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        done = run_command(json.loads(line))
        answers.write(json.dumps(vars(done)) + "\n")
        answers.flush()
