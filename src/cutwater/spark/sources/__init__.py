"""The sources of a flow: one class for each kind, and what they all share.

A source is read in chunks (`feed.Chunk`). The planner of a feed says what is next; what it says
is written to a durable log (`chunklog`) before Spark may log an offset that names it, so a replay
reads the same chunks. Every record has a position that never changes, and its order in an epoch
is (source, number of the chunk, position).

=================  ===============================================================================
shared             `reader` (Spark's interface), `chunklog`, `clock` (watermarks and numbers),
                   `idle`, `reading` (bad records, late events), `binding`
of each kind       a `feed.Feed`: what is unread, how a chunk is read, how a record is named
=================  ===============================================================================
"""

__all__: list[str] = []
