"""``cutwater run``: a flow on Spark."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cutwater.cli.options import with_options
from cutwater.cli.pairs import Bindings, pairs
from cutwater.cli.run_view import run_view
from cutwater.cli.screen import errors, print_json, show_counts, stdout
from cutwater.cli.stopping import EPOCH_FIRST, INTERRUPTED, stops_asked_for
from cutwater.cli.targets import load_flow, spark_package
from cutwater.endings import of_unexpected
from cutwater.errors import CutwaterError, Problem, RefusedError, many
from cutwater.flow import Flow
from cutwater.spark.options import ProcessOptions, RunOptions, declared

if TYPE_CHECKING:
    from cutwater.spark import RunConfig, RunProgress, RunResult

__all__ = ["run"]

_OF_EACH_SOURCE = "Of each --source"


@with_options(RunOptions, ProcessOptions)
def run(
    target: Annotated[str, typer.Argument(help="The flow: module:name or file.py:name")],
    source: Annotated[
        Bindings | None, typer.Option(help="NAME=FOLDER of JSON lines; once for each")
    ] = None,
    sink: Annotated[
        Bindings | None, typer.Option(help="NAME=FOLDER to write to; once for each")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="The checkpoint folder; a run resumes from it")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="A TOML file with these settings and more; options override it"),
    ] = None,
    max_bytes_per_epoch: Annotated[
        int | None,
        typer.Option(
            help="Maximum bytes that an epoch reads", min=1, rich_help_panel=_OF_EACH_SOURCE
        ),
    ] = None,
    max_rows_per_epoch: Annotated[
        int | None,
        typer.Option(
            help="Maximum rows that an epoch reads", min=1, rich_help_panel=_OF_EACH_SOURCE
        ),
    ] = None,
    max_files_per_epoch: Annotated[
        int | None,
        typer.Option(
            help="Maximum files that an epoch reads", min=1, rich_help_panel=_OF_EACH_SOURCE
        ),
    ] = None,
    max_record_bytes: Annotated[
        int | None,
        typer.Option(
            help="Maximum bytes of a line; a longer one is a bad record",
            min=1,
            rich_help_panel=_OF_EACH_SOURCE,
        ),
    ] = None,
    idle_after: Annotated[
        Bindings | None,
        typer.Option(
            help="SOURCE=SECONDS without input after which it no longer holds back watermarks",
            rich_help_panel=_OF_EACH_SOURCE,
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print why each sink has its guarantee")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON")] = False,
    **given: Any,
) -> None:
    """Run a flow on Spark; after a crash, run the same command again.

    Prints what each sink guarantees before it starts. SIGTERM and Ctrl-C finish the epoch first.
    Exit codes: 0 done or stopped, 1 start it again, 2 change input, code or settings first.

    Example:  cutwater run flow.py:flow --config run.toml

    Example:  cutwater run examples/averages.py:flow --source readings=in/readings
    --source resets=in/resets --sink means=out --checkpoint state
    """
    flow, _ = load_flow(target)
    flow.validate()
    spark = spark_package()
    order = _Order(spark, flow, config)
    limits = {
        "max_bytes_per_epoch": max_bytes_per_epoch,
        "max_rows_per_epoch": max_rows_per_epoch,
        "max_files_per_epoch": max_files_per_epoch,
        "max_record_bytes": max_record_bytes,
    }
    bounded = {name: limit for name, limit in limits.items() if limit is not None}
    order.bind(source or [], sink or [], bounded, idle_after or [])
    order.settle(checkpoint, given)
    try:
        result = _run(order, explain)
    except KeyboardInterrupt:
        _print("stopped at once; the next run replays the epoch that was running")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json(result)
    else:
        _show(result, Path(order.checkpoint))


@dataclass
class _Order:
    """The settings of the command line and a configuration, merged."""

    spark: ModuleType
    flow: Flow
    config: Path | None

    def bind(
        self, source: Bindings, sink: Bindings, limits: Mapping[str, int], idle_after: Bindings
    ) -> None:
        """Bind sources and sinks; the command line overrides the file."""
        folders, sinks = pairs("--source", source), pairs("--sink", sink)
        self.file: RunConfig | None = (
            self.spark.load_config(self.config, self.flow, list(folders), list(sinks))
            if self.config
            else None
        )
        lines = self.spark.json_lines
        own = {name: lines(path, **limits) for name, path in folders.items()}
        self.sources: dict[str, Any] = {**(self.file.sources if self.file else {}), **own}
        for name, seconds in _idle(idle_after, self.sources).items():
            self.sources[name] = replace(self.sources[name], idle_after=seconds)
        self.sinks: dict[str, Any] = {**(self.file.sinks if self.file else {}), **sinks}
        self.settings = self.file.spark if self.file else {}

    def settle(self, checkpoint: Path | None, given: Mapping[str, Any]) -> None:
        """Override the options of the file by those of the command line."""
        folder: str | Path | None = checkpoint or (self.file.checkpoint if self.file else None)
        if folder is None:
            raise RefusedError(
                Problem(
                    "no-checkpoint-given",
                    "no checkpoint is given; a run keeps its state and its progress there",
                    "pass --checkpoint FOLDER, or set it in [run] of the configuration",
                )
            )
        self.checkpoint = folder
        settings: dict[str, Any] = {**self.file.run, **self.file.process} if self.file else {}
        settings |= given
        process = declared(ProcessOptions)
        self.run = {name: value for name, value in settings.items() if name not in process}
        self.process = {
            name: settings.get(name, option.default) for name, (_, option) in process.items()
        }


def _run(order: _Order, explain: bool) -> RunResult:
    from cutwater.spark.embedded.jvm import kill_own

    _quieten_py4j()
    flow, spark = order.flow, order.spark
    with (
        run_view(flow.name) as view,
        _watched(spark, flow, order.process, view.note) as (
            note,
            log,
        ),
    ):

        def notify(sentence: str) -> None:
            view.notify(sentence)
            if log:
                log.event("notice", text=sentence)

        is_real_time = order.run.get("mode") == "realtime"
        first = "what was read is released and stored" if is_real_time else EPOCH_FIRST
        with stops_asked_for(notify, order.process["stop_timeout"], kill_own, first) as stops:
            try:
                result: RunResult = spark.run(
                    flow,
                    sources=order.sources,
                    sinks=order.sinks,
                    checkpoint=order.checkpoint,
                    settings=order.settings,
                    explain=explain,
                    is_to_stop=stops.is_asked,
                    on_progress=note,
                    notify=notify,
                    **order.run,
                )
            except Exception as error:
                if stops.is_interrupted:  # killing the JVM made everything else fail
                    raise KeyboardInterrupt from None
                ending = stops.late() if stops.is_late else of_unexpected(error)
                if log:
                    with suppress(CutwaterError):  # the log may be why it failed
                        log.fail(ending)
                raise ending from error
        if log:
            log.event("stopped" if result.is_stopped else "finished", epochs=result.epochs)
        return result


def _quieten_py4j() -> None:
    """Silence the connection to a JVM that died: an error already explains the cause."""
    logging.getLogger("py4j").propagate = False
    logging.getLogger().addFilter(_is_not_of_py4j)  # some of it is logged without a name


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


@contextmanager
def _watched(
    spark: ModuleType, flow: Flow, process: Mapping[str, Any], show: Callable[[RunProgress], None]
) -> Iterator[tuple[Callable[[RunProgress], None], Any]]:
    """The listeners of a run, and its log if there is one."""
    from cutwater.spark.telemetry import metrics, otel, run_log

    with ExitStack() as stack:
        counted = metrics.Metrics(flow.name)
        listeners: list[Callable[[RunProgress], None]] = [show, counted.note]
        log = None
        if process["log"] is not None:
            log = stack.enter_context(run_log.logging_to(process["log"], flow.name))
            log.event("started", pid=os.getpid())
            listeners.append(log.note)
        if process["metrics_port"] is not None:
            host = process["metrics_host"]
            port = stack.enter_context(metrics.serve(counted, process["metrics_port"], host))
            _notify(f"metrics: http://{host}:{port}/metrics")
        if otel.is_asked_for():
            listeners.append(stack.enter_context(otel.exporting(counted)))

        def note(progress: RunProgress) -> None:
            for each in listeners:
                each(progress)

        yield note, log


def _show(result: RunResult, checkpoint: Path) -> None:
    epochs = many(result.epochs, "tick" if result.mode == "realtime" else "epoch")
    _print(f"{result.flow}: {epochs} in run {result.generation} of this checkpoint")
    if result.is_stopped:
        _print("stopped, as requested; the next run continues from here")
    show_counts("sink", result.rows, "rows of all runs")
    for what, counts in (("bad records", result.bad_records), ("late events", result.late)):
        for name, count in counts.items():
            if count:
                kept = checkpoint / what.replace(" ", "-") / name
                _print(f"{what} of '{name}' in all runs: {count}, kept in {kept}")


def _print(text: str) -> None:
    stdout.print(text, soft_wrap=True)


def _notify(text: str) -> None:
    errors.print(text, soft_wrap=True)


def _idle(values: Bindings, sources: Collection[str]) -> dict[str, float]:
    """After how many seconds each source that was named is idle."""
    option, found, problems = "--idle-after", {}, []
    for name, text in pairs(option, values, "source to seconds", "SOURCE=SECONDS").items():
        try:
            found[name] = float(text)
        except ValueError:
            message = f"{option} for '{name}' is {text!r}; it is a number of seconds"
            problems.append(Problem("not-seconds", message, f"for example {option} {name}=30"))
        if name not in sources:
            message = f"{option} names '{name}', and no source of this name is bound"
            problems.append(
                Problem("unknown-source", message, f"bound are: {', '.join(sources) or 'none'}")
            )
    if problems:
        raise RefusedError(problems)
    return found
