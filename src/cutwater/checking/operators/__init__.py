"""The check of a user's operator against the four properties of P4, section 4.3.

`check` draws `streams` and tests `properties` on them; `report` holds the results. Imports
`operators` and the leaves. Begin with `check`.
"""

__all__: list[str] = []
