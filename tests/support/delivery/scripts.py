"""Systems written down as the outputs they show: each run follows one of the scripts."""

from collections.abc import Iterator

from cutwater.semantics.delivery.system import Bag, Change, Element, Recovery, System, bag

INPUT = (Element("in", "start"),)


def plan(rest: str) -> Bag:
    """A working set from which these outputs will still come."""
    return bag(Element("plan", rest)) if rest else bag()


def shows(rest: str) -> Recovery:
    """The recovery after which these outputs come, wherever the system fails."""
    return lambda inputs, outputs: (plan(rest),)


def scripted(*scripts: str, recover: Recovery | None = None) -> System:
    """A system whose reference runs show these letters, one by one."""

    def transforms(working: Bag, outputs: Bag) -> Iterator[Change]:
        for start in working.of_kind("in"):
            yield from ((bag(start), plan(script)) for script in scripts)
        if not working.of_kind("out"):
            for element in working.of_kind("plan"):
                letter, rest = element.value[0], element.value[1:]
                yield bag(element), plan(rest) + bag(Element("out", letter))

    def leaving(working: Bag, outputs: Bag) -> tuple[Element, ...]:
        return working.of_kind("out")

    return System("scripted", "given", transforms, leaving, recover or (lambda a, b: ()))
