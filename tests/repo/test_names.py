"""One name, one thing: no public name stands in two modules for two things."""

import ast
import importlib
from collections import defaultdict

import pytest
from support.repo.package import MODULES

IN_SEVERAL_MODULES = {
    # Labels of the papers: each model is a world of its own, and speaks the words of its paper.
    "BARRIER": (
        "semantics.barriers semantics.inputs",
        "P1's b; and what ends an epoch in an input",
    ),
    "Barrier": ("semantics.drifting.agents semantics.inputs", "P2's barrier releases outputs"),
    "Change": ("semantics.delivery.system semantics.drifting.elements", "P2's change, two models"),
    "Configuration": (
        "semantics.barriers semantics.delivery.system semantics.timely.actions",
        "P1, P2 and P3 each define one",
    ),
    "Coordinator": (
        "semantics.drifting.agents semantics.recovering.one_by_one",
        "the coordinator of P2 and that of P1",
    ),
    "Crash": (
        "semantics.drifting.system semantics.inputs semantics.recovering.cuts",
        "a move of two models; and what crashes a simulated run",
    ),
    "EMPTY": ("semantics.delivery.system semantics.drifting.elements", "the empty value of each"),
    "Element": ("semantics.delivery.system semantics.drifting.elements", "P2's element of Γ"),
    "Graph": ("progress.graph semantics.barriers", "P1's Π; P3's graph of locations"),
    "Input": (
        "semantics.delivery.model semantics.timely.model",
        "P2's Input and P3's Inp, moves of two models",
    ),
    "Lose": ("semantics.delivery.model semantics.drifting.system", "a fault of both models of P2"),
    "Message": (
        "semantics.barriers semantics.drifting.system "
        "semantics.recovering.one_by_one semantics.timely.dataflow",
        "P1, P2 and P3 each define one",
    ),
    "Notify": ("operators.notify semantics.timely.model", "P3's Not"),
    "Output": (
        "semantics.delivery.model semantics.timely.model",
        "P2's Output and P3's Outp, moves of two models",
    ),
    "Process": ("semantics.drifting.agents semantics.recovering.cuts", "a process of each model"),
    "Produce": ("semantics.barriers semantics.drifting.system", "P1's action, P2's producer"),
    "Received": (
        "semantics.drifting.delivery semantics.drifting.messages semantics.recovering.cuts "
        "semantics.timely.dataflow",
        "what is received, in each model",
    ),
    "Recover": ("semantics.barrier_model semantics.delivery.model", "P1's F-Recover, P2's F"),
    "System": (
        "semantics.delivery.system semantics.drifting.system semantics.recovering.cuts",
        "P2's Definition 1, and the state of the other models",
    ),
    "Task": ("flow.tasks semantics.barriers", "P1's TK"),
    "TaskState": ("semantics.barriers semantics.recovering.one_by_one", "P1's state of a task"),
    "Time": ("semantics.drifting.elements times", "P2's t(x)"),
    "is_explained": (
        "checking.transparency.explainability semantics.recovering.one_by_one",
        "P1, Definition 5.2, of a run and of a model",
    ),
    "transform": ("semantics.delivery.system spark.transformer", "P2, Definition 1, Transform"),
    # The parts of a model that the explorer asks for, or that every protocol has.
    "Barriers": ("semantics.barrier_model semantics.recovering.cuts", "a protocol to be explored"),
    "Move": (
        "semantics.barrier_model semantics.drifting.system semantics.recovering.cuts "
        "semantics.timely.model",
        "a step of a run",
    ),
    "Point": (
        "semantics.barrier_model semantics.delivery.model semantics.timely.model",
        "a state of the search",
    ),
    "Run": ("semantics.drifting.delivery semantics.protocols.microbatch", "a run of the model"),
    "World": (
        "semantics.protocols.microbatch semantics.recovering.cuts semantics.recovering.one_by_one",
        "a state of the model",
    ),
    "is_consistent": (
        "semantics.protocols.microbatch_model semantics.recovering.cuts",
        "a claim about the model",
    ),
    "put": (
        "semantics.drifting.system semantics.protocols.realtime_world",
        "the state of a model after a change",
    ),
    "with_run": (
        "semantics.protocols.microbatch semantics.protocols.realtime_world",
        "the same for each engine",
    ),
    "without_run": (
        "semantics.protocols.microbatch semantics.protocols.realtime_world",
        "the same for each engine",
    ),
    # Commands are named as what they run.
    "explain": ("checking.transparency.explanation cli.commands.explain", "a command"),
    "rescale": ("cli.commands.checkpoint spark.checkpoint.rescale", "a command"),
    "run": ("cli.commands.run spark.runner", "a command"),
    "simulate": ("cli.commands.simulate semantics.simulator", "a command"),
    "verify": ("cli.commands.checkpoint spark.inspection", "a command"),
    # The same thing in two layers.
    "main": ("cli.app spark.embedded.fork_client testing.connectors.job", "where a process begins"),
    "task": ("flow.tasks operators.task", "a task of a flow: its decorator, its operator"),
}
"""Public names that several modules define: which modules, and why each may."""


def defined(source: str) -> set[str]:
    """The names that a module defines and does not keep to itself."""
    found = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in found if not name.startswith("_")}


def clashes(sources: dict[str, str]) -> dict[str, str]:
    """Every name that several modules define, and these modules."""
    where = defaultdict(list)
    for module, source in sources.items():
        for name in defined(source):
            where[name].append(module.removeprefix("cutwater."))
    return {
        name: " ".join(sorted(modules))
        for name, modules in sorted(where.items())
        if len(modules) > 1
    }


def test_no_public_name_stands_in_two_modules_for_two_things():
    found = clashes({module: path.read_text() for module, path in MODULES.items()})
    assert found == {name: modules for name, (modules, _) in IN_SEVERAL_MODULES.items()}


def test_a_name_that_packages_export_is_the_same_thing_in_all_of_them():
    exported = defaultdict(dict)
    for module, path in MODULES.items():
        if path.name == "__init__.py" and not module.startswith("cutwater.semantics"):
            package = importlib.import_module(module)
            for name in package.__all__:
                exported[name][id(getattr(package, name))] = module
    assert {name: list(of.values()) for name, of in exported.items() if len(of) > 1} == {}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("class Entry: pass", "def Entry(): pass", {"Entry": "layer.one other.two"}),
        ("LIMIT = 1", "LIMIT: int = 1", {"LIMIT": "layer.one other.two"}),
        ("_own = 1", "_own = 1", {}),
        ("from x import Entry", "class Entry: pass", {}),
    ],
)
def test_a_name_with_two_meanings_is_found(one, other, expected):
    assert clashes({"cutwater.layer.one": one, "cutwater.other.two": other}) == expected
