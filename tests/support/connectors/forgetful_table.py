"""A table that writes an epoch again when it is replayed, on Spark as in memory."""

from cutwater_sqlite import SqliteTable


class ForgetfulTable(SqliteTable):
    """Forgets which epoch of a bucket it has before it writes the bucket (broken)."""

    def write(self, claim, epoch, record, buckets):
        sql = "DELETE FROM cutwater_buckets WHERE output = ? AND bucket = ?"
        with self._transaction() as connection:
            connection.executemany(sql, [(self.table, bucket.label) for bucket in buckets])
        return super().write(claim, epoch, record, buckets)
