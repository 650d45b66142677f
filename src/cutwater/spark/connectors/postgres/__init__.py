"""PostgreSQL: a table that rows go to, and one that they come from.

`sink` and `source` are what the engine asks for; `transactions` writes rows and `ledger` together,
`packed_rows` holds rows ready to be sent, `fields` and `tables` are types and catalog, `checks`
says what is wrong, `connections` keeps and retries. `bindings` is what users call, and needs no
psycopg to be imported. Begin with `sink` or `source`.
"""

from cutwater.spark.connectors.postgres.bindings import postgres_rows, postgres_table

__all__ = ["postgres_rows", "postgres_table"]
