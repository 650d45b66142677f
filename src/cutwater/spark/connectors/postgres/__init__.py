"""PostgreSQL: a table that rows go to, and one that they come from. Needs the extra `postgres`.

`transactions` writes rows and `ledger` together, `packed_rows` holds rows ready to be sent,
`fields` and `tables` are types and catalog, `connections` keeps and retries; `bindings` is what
users call, and imports no psycopg. Begin with `sink` or `source`.
"""

from cutwater.spark.connectors.postgres.bindings import postgres_rows, postgres_table

__all__ = ["postgres_rows", "postgres_table"]
