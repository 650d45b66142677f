"""Real runs of the example flow as processes of their own, to be killed and looked at."""

import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cutwater.testing.connectors.processes import numbered_files, refusal_of, result_of

FLOW = Path(__file__).parents[3] / "examples" / "averages.py"
EPOCHS = 20
BYTES_PER_EPOCH = 10_000


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
        return numbered_files(self.checkpoint / "spark" / "offsets")

    def commits(self) -> list[int]:
        """The epochs that Spark has finished."""
        return numbered_files(self.checkpoint / "spark" / "commits")

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
