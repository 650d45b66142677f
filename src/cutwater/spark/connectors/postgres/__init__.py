"""PostgreSQL: a table as a sink, and a table as a source. Needs the extra `postgres`.

`transactions` writes rows and `ledger` together, `packed_rows` encodes rows for sending, `fields`
and `tables` map types and read the catalog, `connections` pools and retries; `bindings` is what
users call, and imports no psycopg. Begin with `sink` or `source`.
"""

from cutwater.spark.connectors.postgres.bindings import postgres_rows, postgres_table

__all__ = ["postgres_rows", "postgres_table"]
