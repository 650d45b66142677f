import random

import pytest
from support.faults.counting_victims import CountingVictim
from support.faults.pairs import make_pair

from cutwater.spark.checkpoint import power_loss


@pytest.fixture
def seed():
    """Printed, so that a red test tells it."""
    chosen = random.randrange(1_000_000)
    print(f"seed {chosen}")
    return chosen


@pytest.fixture
def rebooted(monkeypatch):
    """Starts in this process are on a machine that was booted meanwhile."""
    monkeypatch.setattr(power_loss, "boot_id", lambda: "another boot")


@pytest.fixture
def make_victim(tmp_path, request):
    """Make a victim that writes to a pair of sink and release."""

    def make(pair, folder=tmp_path, **settings):
        bound = make_pair(pair, folder, request.getfixturevalue)
        return CountingVictim(folder, bound, **settings)

    return make
