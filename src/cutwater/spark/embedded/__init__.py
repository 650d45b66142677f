"""Spark on this machine: the session with its settings, a Java runtime, quick Python processes.

`session` makes the embedded session, `java` finds or brings a runtime, and `fork_server` with
`fork_client` starts Python workers by forking. Imports `storage` only. Begin with `session`.
"""

__all__: list[str] = []
