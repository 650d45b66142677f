"""``cutwater run``: a flow on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from cutwater.cli.screen import errors, live, output, print_json, show_counts
from cutwater.cli.targets import load_flow, spark_package
from cutwater.errors import Problem, RunError

__all__ = ["Bindings", "run"]

Bindings = list[str]


def run(
    target: Annotated[str, typer.Argument(help="The flow: module:name or file.py:name")],
    source: Annotated[Bindings, typer.Option(help="NAME=FOLDER of JSON lines; once for each")],
    sink: Annotated[Bindings, typer.Option(help="NAME=FOLDER to write to; once for each")],
    checkpoint: Annotated[Path, typer.Option(help="The folder that remembers how far the run is")],
    until: Annotated[
        str, typer.Option(help="'caught-up': all that is there now; 'stopped': for ever")
    ] = "caught-up",
    close: Annotated[
        bool,
        typer.Option("--close", help="When all is read, end the input and show what was held back"),
    ] = False,
    on_bad_record: Annotated[
        str, typer.Option(help="'fail', or 'skip': count them and keep them aside")
    ] = "fail",
    forget: Annotated[
        list[str] | None,
        typer.Option(help="A step that is gone and whose state may be lost; once for each"),
    ] = None,
    max_bytes_per_epoch: Annotated[
        int, typer.Option(help="How much of each source one epoch reads at the most", min=1)
    ] = 32 << 20,
    idle_after: Annotated[
        list[str] | None,
        typer.Option(help="SOURCE=SECONDS without input until it holds others back no longer"),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(help="Partitions of a new state: 1, 2, 4, 8 or 16; default: the cores"),
    ] = None,
    master: Annotated[str, typer.Option(help="Where Spark runs")] = "local[*]",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as data")] = False,
) -> None:
    """Run a flow exactly-once on Spark; after a crash, run the same command again.

    Example:  cutwater run averages.py:flow --source readings=in --sink means=out --checkpoint state
    """
    flow, _ = load_flow(target)
    sources, sinks = _pairs("--source", source), _pairs("--sink", sink)
    idle = _idle(idle_after or [], sources)
    flow.validate()
    spark = spark_package()
    with live(f"{flow.name}: starting Spark") as progress:
        result = spark.run(
            flow,
            sources={
                name: spark.json_lines(path, max_bytes_per_epoch, idle.get(name))
                for name, path in sources.items()
            },
            sinks=sinks,
            checkpoint=checkpoint,
            until=until,
            close=close,
            on_bad_record=on_bad_record,
            forget=forget or (),
            partitions=partitions,
            master=master,
            on_progress=lambda p: progress.say(
                f"{flow.name}: epoch {p.epoch} finished in {p.duration_ms / 1000:.1f} s"
            ),
            tell=lambda text: errors.print(text, highlight=False, markup=False, soft_wrap=True),
        )
    if as_json:
        print_json(result)
        return
    output.print(
        f"{flow.name}: {result.epochs} epochs in run {result.generation} of this checkpoint",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    show_counts("sink", result.rows)
    for what, counts in (("bad records", result.bad_records), ("late events", result.late)):
        for name, count in counts.items():
            if count:
                kept = checkpoint / what.replace(" ", "-") / name
                said = f"{what} of '{name}': {count}, kept in {kept}"
                output.print(said, highlight=False, markup=False, soft_wrap=True)


def _idle(values: Bindings, sources: Mapping[str, str]) -> dict[str, float]:
    """After how many seconds each source that was named is idle."""
    option, found, problems = "--idle-after", {}, []
    for name, text in _pairs(option, values, "source to seconds", "SOURCE=SECONDS").items():
        try:
            found[name] = float(text)
        except ValueError:
            said = f"{option} for '{name}' is {text!r}; it is a number of seconds"
            problems.append(Problem("not-seconds", said, f"for example {option} {name}=30"))
        if name not in sources:
            said = f"{option} names '{name}', to which no --source is bound"
            problems.append(
                Problem("unknown-source", said, f"bound are: {', '.join(sources) or 'none'}")
            )
    if problems:
        raise RunError(problems)
    return found


def _pairs(
    option: str, values: Bindings, binds: str = "name to a folder", form: str = "NAME=FOLDER"
) -> dict[str, str]:
    problems = []
    pairs: dict[str, str] = {}
    for value in values:
        name, equals, folder = value.partition("=")
        if not (name and equals and folder):
            problems.append(
                Problem(
                    "not-a-binding",
                    f"{option} is {value!r}; it binds a {binds}",
                    f"{option} {form}",
                )
            )
        elif name in pairs:
            problems.append(
                Problem("bound-twice", f"{option} binds '{name}' twice", "leave one of the two out")
            )
        pairs[name] = folder
    if problems:
        raise RunError(problems)
    return pairs
