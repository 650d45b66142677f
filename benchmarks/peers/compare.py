"""A running count by key of 100,000 keys: Cutwater beside Bytewax, PyFlink and Pathway.

    python benchmarks/peers/compare.py [--rounds 60] [--keys 100000] [--json FILE] [--plot FILE]

All sides read the same CSV files, in a process of their own; each repetition starts it anew. What
each side does and what is timed stands in its script. A peer whose environment is not there is
left out with a sentence; ``scripts/peers`` makes the environments. See ../README.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from harness import Bench, Goal, Side  # noqa: E402
from make_input import make_input  # noqa: E402

from cutwater.spark.embedded.java import java_home  # noqa: E402

PATIENCE_SECONDS = 900


@dataclass(frozen=True)
class Peer:
    """One script, in the environment that it needs."""

    name: str
    script: str
    options: Sequence[str] = ()
    environment: str | None = None
    """The name of a peer's environment; None: the one that runs this."""

    @property
    def python(self) -> Path:
        """The interpreter."""
        if self.environment is None:
            return Path(sys.executable)
        return HERE / f".venv-{self.environment}" / "bin" / "python"

    def why_not(self) -> str | None:
        """A sentence, if this side cannot run."""
        if not self.python.exists():
            reason = HERE / f".venv-{self.environment}.failed"
            said = reason.read_text().strip() if reason.exists() else "run scripts/peers"
            return f"{self.name} is left out: its environment is not there ({said})."
        return None

    def run(self, folder: Path, rounds: int, keys: int) -> dict[str, float]:
        """One repetition in a new process."""
        command = [str(self.python), str(HERE / self.script), str(folder), *self.options]
        command += ["--rounds", str(rounds), "--keys", str(keys)]
        environment = os.environ | {"JAVA_HOME": str(java_home())}
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, env=environment
        )
        answers = [line for line in done.stdout.splitlines() if line.startswith('{"rows"')]
        if done.returncode != 0 or not answers:
            sys.exit(f"{self.name} failed:\n{done.stderr[-3000:]}")
        answer = json.loads(answers[-1])
        if not answer["verified"]:
            sys.exit(f"{self.name} counts something else")
        return {"rows/s": float(answer["rows_per_s"])}


SCALAR = Peer("Cutwater, scalar task", "cutwater_count.py", ["--kind", "scalar"])
BYTEWAX = Peer("Bytewax, 2 processes", "bytewax_count.py", ["--processes"], "bytewax")
PYFLINK = Peer("PyFlink, dataclass state", "pyflink_count.py", [], "pyflink")
PYFLINK_LONG = Peer("PyFlink, number as state", "pyflink_count.py", ["--state", "long"], "pyflink")
BUILT_IN = Peer("Cutwater, built-in count", "cutwater_count.py", ["--kind", "built-in"])
PATHWAY = Peer("Pathway, 2 threads", "pathway_count.py", [], "pathway")

FUNCTIONS = [SCALAR, BYTEWAX, PYFLINK, PYFLINK_LONG]
BUILT_INS = [BUILT_IN, PATHWAY]
PYFLINK_ROUNDS = 4
"""PyFlink gets fewer rows: it is timed per row, and would take minutes."""


def compare(
    bench: Bench, title: str, peers: Sequence[Peer], base: Peer, goals: Sequence[Goal]
) -> None:
    """All peers that can run, in turns."""
    rounds, keys = bench.given.rounds, bench.given.keys
    sides = []
    for peer in peers:
        if why := peer.why_not():
            bench.say(why)
            continue
        few = min(rounds, PYFLINK_ROUNDS) if peer.environment == "pyflink" else rounds
        folder = HERE / ".data" / f"{few}-{keys}"
        make_input(folder, rounds=few, keys=keys)
        sides.append(Side(peer.name, partial(peer.run, folder, few, keys)))
    if sides:
        there = [side.name for side in sides]
        chosen = base.name if base.name in there else there[0]
        bench.compare(title, sides, base=chosen, goals=goals)


def main() -> int:
    """Two comparisons: one Python call for each event, and a built-in count."""
    bench = Bench("peers", __doc__ or "")
    bench.parser.add_argument("--rounds", type=int, help="rows per key: 20 if quick, else 60")
    bench.parser.add_argument("--keys", type=int, default=100_000)
    bench.parser.add_argument("--only", nargs="+", metavar="NAME", help="bytewax, pyflink, ...")
    given = bench.arguments()
    given.rounds = given.rounds or (20 if bench.is_quick else 60)

    def chosen(peers: Sequence[Peer]) -> list[Peer]:
        return [p for p in peers if not given.only or (p.environment or "cutwater") in given.only]

    condition = f"{given.keys:,} keys, one row per key per {given.keys:,} rows"
    compare(
        bench,
        "one Python call per event",
        chosen(FUNCTIONS),
        BYTEWAX,
        [
            Goal(SCALAR.name, PYFLINK.name, "rows/s", at_least=10, condition=condition),
            Goal(SCALAR.name, PYFLINK_LONG.name, "rows/s", at_least=10, condition=condition),
            Goal(SCALAR.name, BYTEWAX.name, "rows/s", at_least=1, condition=condition),
        ],
    )
    compare(
        bench,
        "built-in count",
        chosen(BUILT_INS),
        PATHWAY,
        [Goal(BUILT_IN.name, PATHWAY.name, "rows/s", at_least=1, condition=condition)],
    )
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
