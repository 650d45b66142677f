"""What a record, a name or a message holds does nothing to a terminal, whoever shows it."""

import json
import re
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console
from support.fuzz.checkpoints import make_checkpoint

from cutwater.cli import screen
from cutwater.cli.commands import run as run_command
from cutwater.cli.commands import state
from cutwater.cli.screen import safe

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.exe\u2066\x7f\r"
LIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
FLOW = f"""
from dataclasses import dataclass
import random
import cutwater as cw

@dataclass(frozen=True)
class Item:
    name: str
    size: int

    def __repr__(self):
        return self.name

@cw.task(initial=0)
def total(state: int, item: Item) -> tuple[int, list[Item]]:
    return state + 1, [item] * random.randrange(1, 4)

@cw.task(initial=0)
def failing(state: int, item: Item) -> tuple[int, list[Item]]:
    raise ValueError(item.name)

flow = cw.Flow("totals")
flow.sink("sums", flow.source("items", Item).key_by("name").apply(total))
broken = cw.Flow("broken")
broken.sink("sums", broken.source("items", Item).key_by("name").apply(failing))
named = cw.Flow({HOSTILE!r})
named.sink("sums", named.source("items", Item).key_by("name").apply(total))
inputs = {{"items": [Item({HOSTILE!r}, 1), cw.BARRIER, Item({HOSTILE!r}, 2), cw.CRASH]}}
"""


def is_dead(done):
    """Nothing that was written has an effect, and what it was is still to be seen."""
    shown = done.out + done.err
    assert not LIVE.search(shown), shown
    return "owned" in shown


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_simulate(cli, write, more):
    write(FLOW)
    assert is_dead(cli("simulate", "job.py:flow", *more))


@pytest.mark.parametrize("more", [[], ["--debug"]])
def test_a_message_of_an_error(cli, write, more):
    write(FLOW)
    assert is_dead(cli("simulate", "job.py:broken", *more))


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_check(cli, write, more):
    write(FLOW)
    is_dead(cli("check", "job.py:flow", "--inputs", "job.py:inputs", *more))


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_explain(cli, write, more):
    write(FLOW)
    cli("simulate", "job.py:flow", "--trace", "run.jsonl")
    done = cli("explain", "run.jsonl", *more)
    assert done.code in (0, 1)
    is_dead(done)


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_graph_and_run_of_a_flow_with_such_a_name(cli, write, tmp_path, more):
    write(FLOW)
    is_dead(cli("graph", "job.py:named"))
    (tmp_path / "in").mkdir()
    is_dead(cli("run", "job.py:named", "--source", f"{HOSTILE.strip()}=in", *more))


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_run(cli, write, monkeypatch, more):
    """A run says what its sinks guarantee, each epoch, and what it did."""
    write(FLOW)

    def run(flow, *, notify, on_progress, **options):
        notify(HOSTILE)
        return SimpleNamespace(
            flow=HOSTILE,
            epochs=1,
            generation=1,
            is_stopped=False,
            mode="microbatch",
            rows={HOSTILE: 3},
            bad_records={HOSTILE: 1},
            late={},
        )

    engine = SimpleNamespace(run=run, json_lines=lambda *_, **__: None)
    monkeypatch.setattr(run_command, "spark_package", lambda: engine)
    if more:
        monkeypatch.setattr(run_command, "print_json", lambda found: screen.print_json(vars(found)))
    assert is_dead(cli("run", "job.py:flow", "--checkpoint", "state", *more))


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_state(cli, write, monkeypatch, more):
    found = SimpleNamespace(
        flow=HOSTILE, step=HOSTILE, epoch=1, rows=[{HOSTILE: HOSTILE}], is_whole=False
    )
    engine = SimpleNamespace(read_state=lambda *_, **__: found)
    monkeypatch.setattr(state, "spark_package", lambda: engine)
    if more:
        monkeypatch.setattr(state, "print_json", lambda found: screen.print_json(vars(found)))
    assert is_dead(cli("state", "state", HOSTILE.strip(), *more))


@pytest.mark.parametrize("more", [[], ["--json"]])
@pytest.mark.parametrize("verb", ["show", "verify"])
def test_checkpoint(cli, tmp_path, verb, more):
    made = make_checkpoint(tmp_path)
    made.checkpoint.save(replace(made.checkpoint.identity(), flow=HOSTILE))
    (made.checkpoint.spark / "commits" / "1").write_text(f"v1\n{HOSTILE}")
    assert is_dead(cli("checkpoint", verb, made.checkpoint.root, *more))


def test_a_terminal_gets_the_codes_of_rich_and_no_others(monkeypatch, capsys):
    console = screen._Screen(force_terminal=True, color_system="standard", width=200)
    monkeypatch.setattr(screen, "stdout", console)
    console.print(HOSTILE, style="red", markup=False)
    screen.table(["name"], [[HOSTILE]])
    shown = capsys.readouterr().out
    assert "\x1b[31m" in shown
    assert "\x1b]0;" not in shown
    assert "\x1b[2J" not in shown
    assert not LIVE.search(re.sub(r"\x1b\[[0-9;]*m", "", shown))
    assert safe(HOSTILE) in shown


CODES_OF_RICH = ["10:100:20", ":smile:", "[red]a[/red]", "[/]", "a\\", "\\[bold]", "3 [link=x]"]


@pytest.mark.parametrize("text", CODES_OF_RICH)
def test_text_that_looks_like_markup_is_shown_as_it_is(capsys, text):
    screen.stdout.print(text)
    screen.table([text], [[text]])
    with screen.live(text) as live:
        live.notify(text)
    shown = capsys.readouterr()
    assert [line.rstrip() for line in shown.out.splitlines()] == [text] * 3
    assert shown.err == f"{text}\n"


@pytest.mark.parametrize("text", CODES_OF_RICH)
def test_it_is_shown_as_it_is_on_the_line_of_progress_too(monkeypatch, capsys, text):
    monkeypatch.setattr(screen, "errors", screen._Screen(stderr=True, force_terminal=True))
    with screen.live(text) as live:
        live.notify(text)
        sys.stderr.flush()
    assert text in capsys.readouterr().err


def test_the_console_of_rich_alone_would_let_it_through(capsys):
    Console(file=sys.stdout).print(HOSTILE, markup=False)
    assert LIVE.search(capsys.readouterr().out)


def test_json_stays_the_same_data(capsys):
    screen.print_json({"text": HOSTILE})
    shown = capsys.readouterr().out
    assert not LIVE.search(shown)
    assert json.loads(shown) == {"text": HOSTILE}
