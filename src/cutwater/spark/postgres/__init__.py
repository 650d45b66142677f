"""PostgreSQL: a table that rows go to, and one that they come from.

::

    settings       where a database is, and where its password is found
    connections    connections that are kept for the next epoch; what is tried again, and how often
    tables         names, columns and keys of a table, as the catalog has them
    fields         which column can hold which field, and values as PostgreSQL reads them
    parcels        rows as arrays, ready to be sent: to the server at once, or to a staged file
    ledger         whose table it is, and how far each lane is
    writing        rows and ledger in one transaction
    checks         what is wrong with a table, in sentences
    sink           all of it, as the runtime asks for it
    rows           a table as a source, by transaction and key
    row_reading    what is unread of it, and the rows of a chunk
    bindings       what a user binds a sink or a source to; needs no psycopg to be imported
"""

from cutwater.spark.postgres.bindings import postgres_rows, postgres_table

__all__ = ["postgres_rows", "postgres_table"]
