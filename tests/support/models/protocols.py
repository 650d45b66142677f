"""What the checker finds of a protocol with one rule broken, and how docs/protocols.md shows it."""

import inspect
import os
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path as File
from textwrap import fill

from support.repo.package import ROOT

from cutwater.checking import always, check_model
from cutwater.checking.explorer.paths import Path
from cutwater.semantics.protocols import loop_log_model as loops
from cutwater.semantics.protocols import microbatch_model as micro
from cutwater.semantics.protocols import realtime_model as real
from cutwater.semantics.protocols.loop_log import LoopLog
from cutwater.semantics.protocols.microbatch import Microbatches

PAGE = ROOT / "docs" / "protocols.md"
CONSISTENT = "sinks show one run"
COMPLETE = "in the end all of it"


@dataclass(frozen=True)
class Finding:
    """The run that refutes a claim."""

    claim: str
    model: object
    path: Path
    is_refuting: object
    """Does a path of the model end where the claim does not hold?"""


def model_of(protocol, case):
    """The model of a protocol, and its claims by name."""
    if issubclass(protocol, Microbatches):
        model = micro.MicrobatchModel(protocol(case))
        consistent, complete = micro.is_consistent(case), micro.is_complete(model)
    elif issubclass(protocol, LoopLog):
        model = loops.LoopModel(protocol(case))
        consistent, complete = loops.is_released_in_order(case), loops.is_all_released(model)
    else:
        model = real.RealTimeModel(protocol(case))
        consistent, complete = real.shows_one_run(case), real.is_all_shown(model)
    return model, {
        CONSISTENT: always(CONSISTENT, consistent, observed=True),
        COMPLETE: always(COMPLETE, complete),
    }


def explored(protocol, case):
    """Everything that can happen, and whether both claims hold."""
    model, claims = model_of(protocol, case)
    return check_model(model, list(claims.values()))


@cache
def finding(broken):
    """The first claim that a broken protocol does not keep, and the run that shows it."""
    model, claims = model_of(broken, broken.case)
    for name, claim in claims.items():
        found = check_model(model, [claim], search=getattr(broken, "search", "breadth"))
        if name in found.discoveries:
            return Finding(name, model, found.discoveries[name].path, _refuting(model, claim))
    raise AssertionError(f"{broken.__name__} is not rejected")


def _refuting(model, claim):
    def refutes(path):
        given = model.observation(path.last) if claim.is_of_observation else path.last
        return not claim.predicate(given)

    return refutes


def told(path):
    """A run as a reader tells it: a line for all that one process does in a row."""
    by_actor = groupby(path.actions, key=lambda move: move.who)
    return [f"{who}: {', '.join(move.words for move in moves)}" for who, moves in by_actor]


def rules_overridden(broken):
    """The rules of the protocol that a variant has its own way with."""
    return [name for name in vars(broken) if callable(getattr(broken.__mro__[1], name, None))
            and not name.startswith("__")]  # fmt: skip


def section(broken_by_title):
    """The part of the page that the checker writes: a table, then a run for each mutant."""
    lines = ["| broken rule | what goes wrong | refuted | steps |", "|---|---|---|---|"]
    for title, broken in broken_by_title.items():
        found = finding(broken)
        described = " ".join(inspect.getdoc(broken).split()).replace("``", "`")
        lines.append(f"| {title} | {described} | {found.claim} | {len(found.path)} |")
    for title, broken in broken_by_title.items():
        run = [fill(line, 100, subsequent_indent="    ") for line in told(finding(broken).path)]
        lines += ["", f"**{title}**", "", "```text", *run, "```"]
    return "\n".join(lines) + "\n"


def assert_on_page(name, text, page: File = PAGE):
    """The page has the text between its two markers.

    After a wanted change: ``CUTWATER_UPDATE_PINNED=1`` rewrites it.
    """
    before, rest = page.read_text().split(f"<!-- {name}: by the checker -->\n")
    shown, after = rest.split(f"<!-- {name}: end -->\n")
    if os.environ.get("CUTWATER_UPDATE_PINNED"):
        marks = f"<!-- {name}: by the checker -->\n", f"<!-- {name}: end -->\n"
        page.write_text(f"{before}{marks[0]}\n{text}\n{marks[1]}{after}")
        return
    assert shown == f"\n{text}\n"
