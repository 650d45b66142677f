"""A run that is asked to stop, looked at from outside."""

import json
import subprocess
from collections.abc import Callable

from support.faults.victims import Victim

from cutwater.testing.connectors.processes import kill_all, wait_until


def finishes_its_epoch(
    victim: Victim, by: str, ask: Callable[[subprocess.Popen[str]], None], until: str
) -> None:
    """Assert that a run finishes its epoch when it is asked to stop, and goes on later."""
    process = victim.start("--until", until)
    try:
        wait_until(process, lambda: len(victim.epochs()) >= 2)
        ask(process)
        out, err = process.communicate(timeout=600)
    finally:
        kill_all(process)
    assert process.returncode == 0, err
    assert f"{by}: the epoch that is running is finished first" in err
    result = json.loads(out)
    assert result["is_stopped"]
    assert 2 <= result["next_epoch"] < 12
    assert victim.offsets() == victim.commits()
    assert victim.epochs()[-1] == victim.commits()[-1]
    assert victim.staged() == []
    rest = victim.finish()
    assert not rest["is_stopped"]
    assert victim.epochs() == list(range(len(victim.epochs())))
    written = (victim.inputs / "readings" / "1.jsonl").read_bytes().splitlines()
    assert sum(map(len, victim.seen().values())) == len(written)
