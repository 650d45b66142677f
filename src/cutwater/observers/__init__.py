"""Observers: what a sink shows, read from outside as any reader of that system would."""

__all__: list[str] = []
