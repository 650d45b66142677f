"""The tasks of a real-time run, seen from outside: which process is which, and how far it is."""

from pathlib import Path

from cutwater.spark.realtime.checkpoint import RealTimeCheckpoint
from cutwater.spark.realtime.opening import newest_opening


def holders(checkpoint: Path, part: str) -> list[int]:
    """The processes that have a file of a checkpoint open whose path has a part."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and any(
            str(checkpoint) in link and part in link for link in _links(entry)
        ):
            found.append(int(entry.name))
    return found


def _links(process: Path) -> list[str]:
    try:
        return [str(fd.readlink()) for fd in (process / "fd").iterdir()]
    except OSError:  # it has ended, or is not ours
        return []


def reader_of(checkpoint: Path) -> int | None:
    """The process of a reader, once there is one."""
    return next(iter(holders(checkpoint, "/plan/")), None)


def operator_of(checkpoint: Path) -> int | None:
    """The process of an operator of the last level, once there is one."""
    return next(iter(holders(checkpoint, "/positions/released-")), None)


def batches(checkpoint: Path) -> int:
    """How many batches of Spark's the newest generation has ended."""
    opening = newest_opening(checkpoint)
    commits = opening.folder / "spark" / "commits" if opening else checkpoint
    return len(list(commits.glob("[0-9]*"))) if commits.is_dir() else 0


def next_tick(checkpoint: Path) -> int:
    """The first tick that nothing is planned for."""
    return RealTimeCheckpoint(checkpoint).next_epoch()
