"""The logs of a loop as sources of a query."""

import pytest
from support.flows.items_in_loops import exchanging, looping, write
from support.spark.toy_spark import ToySpark, make_job


@pytest.mark.parametrize("fsync", [True, False])
def test_a_loop_syncs_its_epochs_unless_the_run_does_not(tmp_path, monkeypatch, fsync):
    """A note of what is synced that nothing keeps up would have a reboot discard good epochs."""
    job = make_job(looping(exchanging, plan="log"), tmp_path, feeds_back=True, fsync=fsync)
    write(tmp_path)
    toy = ToySpark(job, monkeypatch, 1)
    toy.run_to_the_end([])
    assert bool(list((tmp_path / "checkpoint").glob("synced*"))) == fsync
