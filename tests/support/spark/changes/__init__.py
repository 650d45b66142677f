"""What may change between two runs, as data: for each change what is run, shown and refused.

`script` has what a change is made of, and the flows that most of them begin with; the others have
the changes, by the names of the table in ``docs/operations.md``.
"""

__all__: list[str] = []
