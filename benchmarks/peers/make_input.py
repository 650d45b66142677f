"""The input that all peers read: the same readings as CSV and as Parquet, in files of one round.

    python benchmarks/peers/make_input.py FOLDER [--rounds 20] [--keys 100000]

A round holds every key once, in an order of its own, so that 100,000 keys get one row for each
100,000 rows. Columns: ``position`` (the number of the row), ``key`` (``user-000001``), ``value``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

__all__ = ["make_input"]


def make_input(folder: Path, *, rounds: int, keys: int) -> None:
    """Write ``csv/`` and ``parquet/``; does nothing if they are there."""
    done = folder / f"rounds-{rounds}-keys-{keys}"
    if done.exists():
        return
    rng = np.random.default_rng(0)
    names = pa.array([f"user-{number:06}" for number in range(keys)])
    for kind in ("csv", "parquet"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    for round_ in range(rounds):
        table = pa.table(
            {
                "position": np.arange(round_ * keys, (round_ + 1) * keys),
                "key": names.take(pa.array(rng.permutation(keys))),
                "value": rng.integers(0, 100, keys),
            }
        )
        name = f"part-{round_:04}"
        options = pa.csv.WriteOptions(quoting_style="none", quoting_header="none")
        pa.csv.write_csv(table, folder / "csv" / f"{name}.csv", options)
        pa.parquet.write_table(table, folder / "parquet" / f"{name}.parquet")
    done.touch()


def main() -> None:
    """Write the input into a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--keys", type=int, default=100_000)
    arguments = parser.parse_args()
    make_input(arguments.folder, rounds=arguments.rounds, keys=arguments.keys)


if __name__ == "__main__":
    main()
