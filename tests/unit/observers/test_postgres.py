from cutwater.observers.postgres import PostgresObserver


def test_rows_are_those_that_are_committed_in_the_order_in_which_they_were_added(postgres):
    postgres.execute("CREATE TABLE seen (n int, name text)", "INSERT INTO seen VALUES (2, 'b')")
    postgres.execute("INSERT INTO seen VALUES (1, 'a')")
    rows = PostgresObserver(postgres.dsn, "seen").rows()
    assert rows == [{"n": 2, "name": "b"}, {"n": 1, "name": "a"}]
    assert PostgresObserver(postgres.dsn, "public.seen", order_by="n").rows() == rows[::-1]
    assert PostgresObserver(postgres.dsn, "seen").count() == 2


def test_epochs_are_those_of_the_ledger(postgres):
    postgres.execute("CREATE SCHEMA watched", "CREATE TABLE watched.out (n int)")
    postgres.execute(
        "CREATE TABLE watched.cutwater_buckets (target text, bucket bigint, epoch bigint)",
        "INSERT INTO watched.cutwater_buckets VALUES"
        " ('watched.out', 2, 7), ('watched.out', 1, 5), ('watched.other', 1, 9)",
    )
    assert PostgresObserver(postgres.dsn, "watched.out").epochs() == {1: 5, 2: 7}
