"""The check of a user's operator against the four properties of P4, section 4.3.

`check` draws `streams` and tries `properties` on them; `report` says what was found. Imports
`operators` and the leaves. Begin with `check`.
"""

__all__: list[str] = []
