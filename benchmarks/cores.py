"""How throughput grows with cores: the same flow on one core and on all, as far as there are more.

    python benchmarks/cores.py [--rounds 24] [--keys 100000] [--json FILE] [--plot FILE]

A running count of CSV files as in `peers/compare.py`, each repetition in a session of its own with
``local[1]``, ``local[2]`` and so on. The state lies in as many partitions as there are cores.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))

from compare import Peer  # noqa: E402
from harness import Bench, Side  # noqa: E402
from make_input import make_input  # noqa: E402

KINDS = {"scalar": "scalar task", "vectorised": "vectorised task"}


def main() -> int:
    """Each kind of task on 1, 2, 4, ... cores."""
    bench = Bench("cores", __doc__ or "")
    bench.parser.add_argument("--rounds", type=int, help="rows per key: 8 if quick, else 24")
    bench.parser.add_argument("--keys", type=int, default=100_000)
    given = bench.arguments()
    rounds = given.rounds or (8 if bench.is_quick else 24)
    folder = HERE / "peers" / ".data" / f"{rounds}-{given.keys}"
    make_input(folder, rounds=rounds, keys=given.keys)
    cores = [n for n in (1, 2, 4, 8, 16) if n <= (os.cpu_count() or 1)]
    for kind, said in KINDS.items():
        peers = [
            Peer(f"{n} core{'s' * (n > 1)}", "cutwater_count.py", _options(kind, n)) for n in cores
        ]
        sides = [Side(peer.name, partial(peer.run, folder, rounds, given.keys)) for peer in peers]
        bench.compare(f"{said}, {given.keys:,} keys", sides, base=peers[0].name)
    return bench.finish()


def _options(kind: str, cores: int) -> list[str]:
    return ["--kind", kind, "--cores", str(cores)]


if __name__ == "__main__":
    sys.exit(main())
