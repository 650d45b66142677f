"""A PostgreSQL server of one's own: a cluster in a folder that goes away, on loopback."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg
import pytest
from support.repo.not_run import need

from cutwater.testing.connectors.processes import descendants

PACKAGED = Path("/usr/lib/postgresql")
"""Where Debian has the servers, by version."""
PATIENCE_S = 60
QUICK = {"fsync": "off", "full_page_writes": "off"}
"""What survives the end of the server, but not that of the machine."""
PASSWORD = "pa55 'word\\"
"""Of the role `guarded`, the only one that needs one."""


def find_binaries() -> Path:
    """The folder of `initdb` and `postgres`; without one the current test is not run."""
    packaged = sorted(PACKAGED.glob("*/bin"), key=_version, reverse=True)
    on_path = shutil.which("initdb")
    named = os.environ.get("CUTWATER_POSTGRES")
    candidates = [Path(named)] if named else []
    candidates += packaged
    candidates += [Path(on_path).resolve().parent] if on_path else []
    for folder in candidates:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    return need("no PostgreSQL server found", provided_by="make services")


def _version(folder: Path) -> float:
    name = folder.parent.name
    return float(name) if name.replace(".", "", 1).isdigit() else 0.0


class PostgresServer:
    """A server that can be stopped, cut off and started again; its port stays the same."""

    def __init__(self, folder: Path, settings: Mapping[str, str] = QUICK) -> None:
        self._binaries = find_binaries()
        self._folder = folder
        self._data = folder / "data"
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = _unprivileged() if os.geteuid() == 0 else None
        if self._owner:
            os.chown(folder, self._owner.pw_uid, self._owner.pw_gid)
        self._initialise()
        self.port = _free_port()

    @property
    def dsn(self) -> str:
        """Where the server is, for its superuser."""
        return f"host=127.0.0.1 port={self.port} dbname=postgres user=tester"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server is stopped"
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            **self._settings,
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            command = [*_ending_with_us(), self._binaries / "postgres", "-D", self._data, *options]
            self._process = self._run(command, stdout=log, stderr=log)
        deadline = time.monotonic() + PATIENCE_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError((self._folder / "log").read_text()[-2000:])
            time.sleep(0.02)

    def stop(self, how: str = "fast") -> None:
        """Stop it: `fast` ends every session, `immediate` is as if it had crashed."""
        if self._process is None:
            return
        self._process.send_signal({"fast": signal.SIGINT, "immediate": signal.SIGQUIT}[how])
        self._process.wait(PATIENCE_S)
        self._process = None

    def restart(self, how: str = "fast") -> None:
        self.stop(how)
        self.start()

    def pause(self) -> None:
        """Let it hang, with all connections open."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, sign: signal.Signals) -> None:
        for pid in descendants(self.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sign)

    def execute(self, *statements: str) -> list[tuple]:
        """Run statements, each by itself; what the last of them returns."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def wait_for_a_lock(self) -> None:
        """Until some session of Cutwater waits for another session."""
        query = """
            SELECT 1 FROM pg_stat_activity
            WHERE application_name = 'cutwater' AND wait_event_type = 'Lock'
        """
        deadline = time.monotonic() + PATIENCE_S
        while not self.execute(query):
            assert time.monotonic() < deadline, "nobody waits"
            time.sleep(0.01)

    def _initialise(self) -> None:
        options = ["--username=tester", "--auth=trust", "--encoding=UTF8", "--no-locale"]
        command = [self._binaries / "initdb", "-D", self._data, "--no-sync", *options]
        with (self._folder / "initdb.log").open("wb") as log:
            code = self._run(command, stdout=log, stderr=log).wait()
        assert code == 0, (self._folder / "initdb.log").read_text()
        rules = self._data / "pg_hba.conf"
        rules.write_text(f"host all guarded all scram-sha-256\n{rules.read_text()}")

    def _run(self, command: list, **streams) -> subprocess.Popen[bytes]:
        as_user = {}
        if self._owner:  # the server refuses to run as root
            as_user = {
                "user": self._owner.pw_uid,
                "group": self._owner.pw_gid,
                "extra_groups": [],
            }
        environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"}
        return subprocess.Popen(command, cwd=self._folder, env=environment, **as_user, **streams)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.dsn, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True


def _unprivileged() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    return need("no user 'postgres' or 'nobody' to run PostgreSQL as", provided_by="make services")


def _ending_with_us() -> list[str]:
    """What makes a server end when the process that started it is killed, where there is such."""
    found = shutil.which("setpriv")
    return [found, "--pdeathsig", "QUIT", "--"] if found else []


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def postgres_server(settings: Mapping[str, str] = QUICK) -> Iterator[PostgresServer]:
    """A server that ends with the block, and its files with it."""
    find_binaries()
    with tempfile.TemporaryDirectory(prefix="cutwater-postgres-") as folder:
        server = PostgresServer(Path(folder), settings)
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server for the whole session; each test has tables of its own."""
    with postgres_server() as server:
        password = PASSWORD.replace("'", "''")
        server.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{password}'")
        yield server
