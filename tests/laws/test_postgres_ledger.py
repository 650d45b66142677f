"""However attempts interleave and die, a table has each row once, and each bucket in order."""

import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.connectors.postgres_sink import Out

from cutwater.errors import RunError
from cutwater.spark.connectors.postgres import transactions as writing

TASKS = [(0, 1), (2,), (3, 4, 5)]
"""The buckets of each task."""
EPOCHS = 3


class Killed(Exception):
    """The process is gone, in the middle of a transaction."""


def rows_of(bucket, epoch):
    """What a bucket has in an epoch, the same in every attempt; now and then nothing."""
    return [epoch * 100 + i * 10 + bucket for i in range((bucket + epoch) % 4)]


class Run:
    """A driver that is restarted, tasks that are tried again, and what is left of former ones."""

    def __init__(self, out):
        self.out = out.ready()
        self.claims = [out.claim]
        self.epoch = 0
        self.receipts = {}
        self.published = []

    def attempt(self, task, age=0, back=0):
        """A task's attempt: of this run or of one `age` runs ago, for this epoch or an old one."""
        claim = self.claims[max(0, len(self.claims) - 1 - age)]
        epoch = max(0, self.epoch - back)
        buckets = {
            bucket: rows_of(bucket, epoch) for bucket in TASKS[task] if rows_of(bucket, epoch)
        }
        with self._fencing(claim):
            receipt = self.out.write(epoch, buckets, claim)
            if claim == self.claims[-1] and epoch == self.epoch:
                self.receipts[task] = receipt

    @contextlib.contextmanager
    def _fencing(self, claim):
        """A zombie may be told that it is one, and nobody else."""
        try:
            yield
        except RunError as error:
            if claim == self.claims[-1] or error.problems[0].code != "fenced":
                raise

    def die(self, task, patch):
        """A task dies after it has claimed its buckets, before it commits."""

        def dies(*_):
            raise Killed

        with patch.context() as patched:
            patched.setattr(writing, "_insert", dies)
            try:
                self.attempt(task)
            except Killed:
                self.receipts.pop(task, None)

    def publish(self, crash):
        """The driver publishes, if all tasks are done; it may die before that is noted."""
        if len(self.receipts) < len(TASKS):
            return
        self.out.publish(self.epoch, list(self.receipts.values()), self.claims[-1])
        self.published.append((self.epoch, list(self.receipts.values())))
        if crash:
            self.restart()
        else:
            self.epoch += 1
            self.receipts = {}

    def publish_again(self, age):
        """A former publication is done again, by this run or by a zombie."""
        if self.published:
            claim = self.claims[max(0, len(self.claims) - 1 - age)]
            epoch, receipts = self.published[-1]
            with self._fencing(claim):
                self.out.publish(epoch, receipts, claim)

    def restart(self):
        self.out.restart()
        self.claims.append(self.out.claim)
        self.receipts = {}

    def finish(self):
        while self.epoch < EPOCHS:
            for task in range(len(TASKS)):
                self.attempt(task)
            self.publish(crash=False)

    def check(self):
        """Each bucket shows a prefix; where epochs are shown at once, all of each or nothing."""
        buckets = self.out.buckets()
        for bucket in range(6):
            expected = [n for epoch in range(EPOCHS + 1) for n in rows_of(bucket, epoch)]
            found = buckets.get(bucket, [])
            assert found == expected[: len(found)]
        if self.out.sink.release == "commit":
            newest = max((epoch for epoch, _ in self.published), default=-1)
            shown = [
                n for bucket in range(6) for e in range(newest + 1) for n in rows_of(bucket, e)
            ]
            assert sorted(n for ns in buckets.values() for n in ns) == sorted(shown)


tasks = st.integers(0, len(TASKS) - 1)
few = st.integers(0, 2)
actions = st.one_of(
    st.tuples(st.just("attempt"), tasks),
    st.tuples(st.just("attempt"), tasks, few, few),
    st.tuples(st.just("die"), tasks),
    st.tuples(st.just("publish"), st.booleans()),
    st.tuples(st.just("publish_again"), few),
    st.tuples(st.just("restart")),
)


@pytest.mark.parametrize("release", ["early", "commit"])
@given(script=st.lists(actions, max_size=25))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_each_row_once_and_each_bucket_in_order(postgres, tmp_path, monkeypatch, release, script):
    run = Run(Out(postgres, tmp_path, release=release))
    for name, *arguments in script:
        if run.epoch == EPOCHS:
            break
        if name == "die":
            arguments.append(monkeypatch)
        getattr(run, name)(*arguments)
        run.check()
    run.finish()
    buckets = run.out.buckets()
    for bucket in range(6):
        expected = [n for epoch in range(EPOCHS) for n in rows_of(bucket, epoch)]
        assert buckets.get(bucket, []) == expected
    assert run.out.sink.row_count(run.out.claim) == sum(map(len, buckets.values()))
