"""Runs that sleep, past their lock, while another takes over, and wake."""

import signal
import subprocess

from support.faults.counting_victims import CountingVictim

from cutwater.testing.connectors.processes import kill_all, refusal_of, signal_all, wait_until
from cutwater.testing.connectors.traps import Trap


def paused(victim: CountingVictim, trap: Trap) -> "subprocess.Popen[str]":
    """A run that stands still, all of it, at a trap."""
    process = victim.start(trap=trap)
    try:
        wait_until(process, lambda: trap.is_reached)
        signal_all(process, signal.SIGSTOP)
    except BaseException:
        kill_all(process)
        raise
    return process


def take_over(victim: CountingVictim) -> None:
    """Pause a run, let another take over and finish, wake the first: it is refused as fenced.

    As if the second ran where the lock of the first does not reach: its file is another one.
    """
    is_early = victim.pair.binding.get("release") == "early"
    # An early sink releases rows in `write`; there is nothing to fence in `publish`.
    trap = victim.trap("before-write" if is_early else "before-publish")
    zombie = paused(victim, trap)
    try:
        (victim.checkpoint / "lock").unlink()
        victim.finish()
        victim.check_whole()
        trap.let_go()
        signal_all(zombie, signal.SIGCONT)
        sentence = refusal_of(zombie)
    finally:
        kill_all(zombie)
    assert "[fenced]" in sentence
    victim.check_whole()
