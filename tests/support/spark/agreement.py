"""What Spark wrote against what the simulator says, epoch by epoch.

The epochs are read from the checkpoint: which lines each of them read. They are given to the
simulator with barriers between them, so the two must agree exactly.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

import cutwater as cw
from cutwater.flow.steps import Source
from cutwater.spark.checkpoint.offset_log import LOG
from cutwater.spark.connectors.base.source import BAD, Chunk, SourceConnector
from cutwater.spark.connectors.files.json_source import JsonLines
from cutwater.spark.storage.entry_log import EntryLog

Offsets = Sequence[Mapping[str, int]]
"""For each epoch the newest entry of each source's log."""


def offsets_of(checkpoint: Path, sources: Iterable[str]) -> list[dict[str, int]]:
    """What Spark's offset log says about each epoch."""
    names = sorted(sources)
    found = []
    for batch in sorted(int(p.name) for p in (checkpoint / "spark/offsets").glob("[0-9]*")):
        assert batch == len(found), "an epoch is missing in the offset log"
        _, _, *lines = (checkpoint / f"spark/offsets/{batch}").read_text().splitlines()
        assert len(lines) >= len(names), "the logs of a loop come behind the sources"
        before = found[-1] if found else dict.fromkeys(names, 0)
        ends = [
            before[n] if line == "-" else json.loads(line)["entry"]
            for n, line in zip(names, lines, strict=False)
        ]
        found.append(dict(zip(names, ends, strict=True)))
    return found


def ends_of(checkpoint: Path, names: Sequence[str]) -> list[dict[str, Any]]:
    """The whole offsets of each epoch in Spark's log, by the names of the query's sources."""
    found: list[dict[str, Any]] = []
    for epoch in range(len(list((checkpoint / "spark/offsets").glob("[0-9]*")))):
        _, _, *lines = (checkpoint / f"spark/offsets/{epoch}").read_text().splitlines()
        before = found[-1] if found else {name: {"entry": 0} for name in names}
        ends = zip(names, lines, strict=True)
        found.append({n: before[n] if line == "-" else json.loads(line) for n, line in ends})
    return found


def is_closed(checkpoint: Path) -> bool:
    """Was the end of the input the newest epoch?"""
    newest = max((checkpoint / "spark/offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    return '"end"' in newest.read_text()


def input_epochs(ends: Sequence[Mapping[str, Any]], sources: Iterable[str]) -> list[int]:
    """For each epoch the number of the input epoch that it belongs to: a loop takes several."""
    names = list(sources)
    found: list[int] = []
    before: dict[str, Any] = {}
    for end in ends:
        now = {name: end[name] for name in names}
        found.append((found[-1] if found else -1) + (now != before))
        before = now
    return found


def input_epochs_shown(ends: Sequence[Mapping[str, Any]], sources: Iterable[str]) -> list[int]:
    """The same behind a loop by a log: for each epoch the one that leaves in it; -1: none."""
    numbers = input_epochs(ends, sources)
    return [numbers[n] if (n := leaves_in(ends, epoch)) >= 0 else -1 for epoch in range(len(ends))]


def leaves_in(ends: Sequence[Mapping[str, Any]], epoch: int) -> int:
    """The number of the input epoch that leaves a loop by a log in an epoch; -1: none."""
    (left,) = (offset for name, offset in ends[epoch].items() if name.startswith("left: "))
    is_news = left.get("planned") == epoch  # without, the offset is that of an earlier one
    return left.get("leaves", -1) if is_news else -1


def by_input(ends: Sequence[Any], numbers: Sequence[int]) -> list[Any]:
    """Of what each epoch reads up to, that of each input epoch."""
    return [end for n, end in enumerate(ends) if n == 0 or numbers[n] != numbers[n - 1]]


def items_of(
    checkpoint: Path, source: Source, entry: int, connector: SourceConnector | None = None
) -> list[Any]:
    """The records of an entry of the log of a source, or the watermark that it took from others.

    Files of lines are read here, anything else by its connector.
    """
    if connector is not None and not isinstance(connector, JsonLines):
        return _read_by(connector, checkpoint, source, entry)
    decode = msgspec.json.Decoder(source.type).decode
    chunks = EntryLog(checkpoint / "sources" / source.name, LOG).read(entry)
    if chunks[0]["start"] == chunks[0]["end"]:
        return [cw.Watermark(chunks[0]["newest_after"]["watermark of the others"])]
    texts = [Path(c["path"]).read_bytes()[c["start"] : c["end"]] for c in chunks]
    return [decode(line) for text in texts for line in text.split(b"\n") if line.strip()]


def _read_by(connector: SourceConnector, checkpoint: Path, source: Source, entry: int) -> list[Any]:
    chunks = EntryLog(checkpoint / "sources" / source.name, LOG).read(entry)
    reader = connector.reader(source.type)
    raws = (
        raw for chunk in chunks for run in reader.batches(Chunk.of_json(chunk)) for raw in run.raws
    )
    found = []
    for raw in raws:
        with suppress(*BAD):
            found.append(reader.decode_one(raw))
    return found


def inputs_of(
    flow: cw.Flow, checkpoint: Path, offsets: Offsets, connectors: Mapping[str, Any] | None = None
) -> dict[str, list[Any]]:
    """The inputs of a run, with a barrier after every epoch."""
    inputs: dict[str, list[Any]] = {}
    for source in (step for step in flow.steps if isinstance(step, Source)):
        items = inputs.setdefault(source.name, [])
        before = 0
        for epoch in offsets:
            for entry in range(before + 1, epoch[source.name] + 1):
                items += items_of(checkpoint, source, entry, (connectors or {}).get(source.name))
            items.append(cw.BARRIER)
            before = epoch[source.name]
    return inputs


def expected(
    flow: cw.Flow,
    checkpoint: Path,
    offsets: Offsets,
    *,
    is_closed: bool = False,
    connectors: Mapping[str, Any] | None = None,
) -> dict[str, list[list[bytes]]]:
    """For each sink and epoch the lines that the simulator would have written, in order.

    The last epoch of a closed run is the end of the input; one that was not closed has no end.
    """
    if not offsets:
        return {}
    read = offsets[:-1] if is_closed else offsets
    result = cw.simulate(flow, inputs_of(flow, checkpoint, read, connectors))
    encode = msgspec.json.Encoder().encode
    shown = {s: [[encode(v) for v in e] for e in result.by_epoch(s)] for s in result.events}
    for epochs in shown.values():
        if not read:  # without any input the simulator has an empty epoch all the same
            assert epochs.pop(0) == []
        if not is_closed:
            epochs.pop()
        assert len(epochs) == len(offsets)
    return shown


def parts_of(folder: Path) -> dict[int, list[list[bytes]]]:
    """What a plain reader sees: the lines of each part file of each epoch."""
    found: dict[int, list[list[bytes]]] = {}
    for path in sorted(folder.glob("epoch=*/*.jsonl")):
        found.setdefault(int(path.parent.name[6:]), []).append(path.read_bytes().splitlines())
    return found


def is_subsequence(part: Sequence[bytes], whole: Iterable[bytes]) -> bool:
    """Are the lines of a part among the whole in the same order?"""
    rest = iter(whole)
    return all(line in rest for line in part)


def assert_agreement(
    wanted: Mapping[str, Sequence[Sequence[bytes]]],
    folders: Mapping[str, Path],
    key: Callable[[Any], Any] | None = None,
    numbers: Sequence[int] | None = None,
) -> None:
    """Each epoch has the same rows; each part is in order; each key's rows are in order.

    `numbers` are the input epochs to which epochs belong; default: each is one.
    """
    for sink, epochs in wanted.items():
        parts: dict[int, list[list[bytes]]] = {}
        for epoch, lines_of_parts in parts_of(folders[sink]).items():
            parts.setdefault(numbers[epoch] if numbers else epoch, []).extend(lines_of_parts)
        assert set(parts) == {number for number, lines in enumerate(epochs) if lines}
        for number, lines in enumerate(epochs):
            found = [line for part in parts.get(number, []) for line in part]
            assert Counter(found) == Counter(lines), f"{sink}, epoch {number}"
            for part in parts.get(number, []):
                assert is_subsequence(part, lines), f"{sink}, epoch {number}: {part} not in order"
            if key is not None:
                assert by_key(found, key) == by_key(lines, key), f"{sink}, epoch {number}"


def by_key(lines: Iterable[bytes], key: Callable[[Any], Any]) -> dict[Any, list[bytes]]:
    """The lines of each key, in order."""
    found: dict[Any, list[bytes]] = {}
    for line in lines:
        found.setdefault(key(json.loads(line)), []).append(line)
    return found


def write_lines(folder: Path, items: Sequence[Any], size: int) -> None:
    """Write records as JSON lines, so many into each file."""
    folder.mkdir(parents=True)
    for number, start in enumerate(range(0, len(items), size)):
        lines = b"".join(msgspec.json.encode(item) + b"\n" for item in items[start : start + size])
        (folder / f"{number:02}.jsonl").write_bytes(lines)
