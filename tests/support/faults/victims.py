"""Real runs of the example flow as processes of their own, to be killed and looked at."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FLOW = Path(__file__).parents[3] / "examples" / "averages.py"
EPOCHS = 20
BYTES_PER_EPOCH = 10_000
DEADLINE_SECONDS = 600
"""How long to wait for something to be seen before giving up; machines may be slow."""


def write_inputs(folder: Path, seed: int, epochs: int = EPOCHS) -> Path:
    """Readings and resets for a few dozen small epochs."""
    rng = random.Random(seed)
    for name in ("readings", "resets"):
        (folder / name).mkdir(parents=True)
    size = at = 0
    with (folder / "readings" / "1.jsonl").open("w") as file:
        while size < epochs * BYTES_PER_EPOCH:
            at += 1
            record = {"sensor": f"s{rng.randrange(40)}", "at": at, "value": rng.random()}
            size += file.write(json.dumps(record) + "\n")
    with (folder / "resets" / "1.jsonl").open("w") as file:
        for _ in range(100):
            record = {"sensor": f"s{rng.randrange(40)}", "at": rng.randrange(at)}
            file.write(json.dumps(record) + "\n")
    return folder


@dataclass
class Victim:
    """One output and its checkpoint, whatever processes have worked on it."""

    folder: Path
    inputs: Path

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def start(self, *more: str, **environment: str) -> subprocess.Popen[str]:
        """Start the run as a user would, in a session of its own."""
        command = [f"{FLOW}:flow", "--json", "--max-bytes-per-epoch", str(BYTES_PER_EPOCH)]
        command += ["--source", f"readings={self.inputs / 'readings'}"]
        command += ["--source", f"resets={self.inputs / 'resets'}"]
        command += ["--sink", f"means={self.out}", "--checkpoint", str(self.checkpoint)]
        return start_cutwater("run", *command, *more, **environment)

    def start_rescaling(self, partitions: int) -> subprocess.Popen[str]:
        """Start to move the state as a user would."""
        command = ["rescale", str(self.checkpoint), "--partitions", str(partitions), "--json"]
        return start_cutwater("checkpoint", *command)

    def finish(self, **environment: str) -> dict:
        """Run to the end; what the run says of itself."""
        return result_of(self.start(**environment))

    def refusal(self) -> str:
        """Run, expecting to be refused; the sentence."""
        return refusal_of(self.start())

    def epochs(self) -> list[int]:
        """The epochs that a reader sees."""
        return sorted(int(path.name.split("=")[1]) for path in self.out.glob("epoch=*"))

    def offsets(self) -> list[int]:
        """The epochs that Spark has written ahead."""
        return numbered(self.checkpoint / "spark" / "offsets")

    def commits(self) -> list[int]:
        """The epochs that Spark has finished."""
        return numbered(self.checkpoint / "spark" / "commits")

    def staged(self) -> list[str]:
        """What is written and not yet published."""
        folder = self.out / "_cutwater" / "staging"
        return [path.name for path in folder.glob("*/*")]

    def seen(self) -> dict[int, list[bytes]]:
        """Every row of every epoch, as a reader of plain files sees them."""
        return {
            epoch: [
                line
                for part in sorted(self.out.glob(f"epoch={epoch}/*.jsonl"))
                for line in part.read_bytes().splitlines()
            ]
            for epoch in self.epochs()
        }


def result_of(process: subprocess.Popen[str]) -> dict:
    """What a command says of itself when it has ended."""
    try:
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
    finally:
        kill_all(process)
    assert process.returncode == 0, err
    return json.loads(out)


def refusal_of(process: subprocess.Popen[str]) -> str:
    """The sentence with which a command is refused."""
    try:
        _, err = process.communicate(timeout=DEADLINE_SECONDS)
    finally:
        kill_all(process)
    assert process.returncode == 2, err
    assert "Traceback" not in err
    return err


def numbered(folder: Path) -> list[int]:
    """The files of a folder whose names are numbers."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(name) for name in names if name.isdigit())


def start_cutwater(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Start the command line as a user would, in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", "from cutwater.cli import main; main()", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, **environment},
    )


def with_tests() -> dict[str, str]:
    """The environment of a process that can import what tests share."""
    tests = str(Path(__file__).parents[2])
    return {"PYTHONPATH": os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])}


def wait_until(process: subprocess.Popen[str], is_seen: Callable[[], bool]) -> None:
    """Wait for something that can be seen from outside, while the process lives."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_seen():
        assert process.poll() is None, f"the run ended before it was seen: {process.communicate()}"
        assert time.monotonic() < deadline, "it was not seen in time"
        time.sleep(0.002)


def children() -> dict[int, list[int]]:
    """The processes that each process has started and that are still its own."""
    found: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            found.setdefault(int(fields[1]), []).append(int(entry.name))
    return found


def descendants(root: int) -> list[int]:
    """A process and all that come from it."""
    known = children()
    found = [root]
    for pid in found:
        found += known.get(pid, [])
    return found


def signal_all(process: subprocess.Popen[str], sign: signal.Signals) -> None:
    """Send a signal to the process and everything it started."""
    for pid in descendants(process.pid):
        try:
            os.kill(pid, sign)
        except ProcessLookupError:
            continue


def kill_all(process: subprocess.Popen[str]) -> None:
    """SIGKILL to the process and everything it started."""
    signal_all(process, signal.SIGKILL)
    if process.stdout and not process.stdout.closed:
        process.communicate()


def kill_driver(process: subprocess.Popen[str]) -> None:
    """SIGKILL to the Python driver alone: its JVM lives on for a moment."""
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe:
            pipe.close()
