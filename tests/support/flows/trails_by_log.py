"""A loop by a log that concatenates, with states of each input epoch: several overlap."""

from dataclasses import dataclass

import cutwater as cw


@dataclass(frozen=True)
class Trail:
    place: str
    text: str
    left: int


@cw.task(initial="")
def walked(whole: str, trail: Trail) -> tuple[str, list[Trail]]:
    """Not commutative: a place tells all that came by, in order."""
    whole = (whole + trail.text)[-9:]
    return whole, [Trail(trail.place, whole, trail.left)]


def onward(trail: Trail) -> list[Trail]:
    place = "abcde"[(len(trail.text) + trail.left) % 5]
    return [Trail(place, trail.text[-3:], trail.left - 1)] if trail.left else []


def walking(stream: cw.Stream) -> tuple[cw.Stream, cw.Stream]:
    told = stream.key_by("place", name="by place").apply(walked)
    return told.flat_map(onward), told


trails = cw.Flow("trails")
_left = trails.source("trails", Trail).iterate(
    walking, state_per_epoch=True, plan="log", name="walk"
)
trails.sink("out", _left.apply(walked, name="all that left"))
