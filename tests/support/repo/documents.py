"""Run the examples of a Markdown document: its python and console blocks, in order."""

import doctest
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

FLAGS = doctest.ELLIPSIS
RUNNABLE = ("cutwater", "python")


@dataclass(frozen=True)
class Block:
    """A fenced block of a document."""

    language: str
    line: int
    """The number of its first line of code."""
    code: str


def blocks(text: str) -> Iterator[Block]:
    """Every fenced block that is not preceded by a line `<!-- not run: reason -->`."""
    lines = iter(enumerate(text.splitlines(), start=1))
    before = ""
    for number, line in lines:
        if line.startswith("```"):
            body = []
            for _, inner in lines:
                if inner.startswith("```"):
                    break
                body.append(inner)
            if not before.startswith("<!-- not run: "):
                yield Block(line[3:].strip(), number + 1, "\n".join(body) + "\n")
        before = line or before


def commands(code: str) -> Iterator[tuple[str, str]]:
    """Every `$ command` of a console block, with the output shown below it."""
    joined = code.replace("\\\n", "")
    for part in ("\n" + joined).split("\n$ ")[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown.rstrip("\n") + "\n" if shown.strip() else ""


def run_command(command: str, folder: Path) -> str:
    """Return everything that a command of a document prints."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        command, shell=True, cwd=folder, env=env, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return "".join(line.rstrip() + "\n" for line in done.stdout.splitlines())


def check_console(block: Block, folder: Path) -> list[str]:
    """Run the commands of a block; return those that print something else than is shown."""
    checker = doctest.OutputChecker()
    found = []
    for command, shown in commands(block.code):
        if command.split()[0] in RUNNABLE:
            printed = run_command(command, folder)
            if not checker.check_output(shown, printed, FLAGS):
                found.append(f"line {block.line}: $ {command}\nshown:\n{shown}\ngot:\n{printed}")
    return found


def check_python(block: Block, module: ModuleType) -> list[str]:
    """Run a block, which may be a doctest, in a module's namespace."""
    if not block.code.lstrip().startswith(">>>"):
        padding = "\n" * (block.line - 1)  # so that errors name the line of the document
        exec(compile(padding + block.code, str(module.__file__), "exec"), vars(module))
        return []
    test = doctest.DocTestParser().get_doctest(
        block.code, vars(module), f"line {block.line}", module.__file__, block.line - 1
    )
    found: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=found.append, clear_globs=False)
    vars(module).update(test.globs)
    return found


def check_document(path: Path, module: ModuleType, folder: Path) -> list[str]:
    """Run every block of a document in a folder; return what is not as it is shown."""
    module.__file__ = str(path)
    found = []
    for block in blocks(path.read_text()):
        if block.language == "python":
            found += check_python(block, module)
        elif block.language == "console":
            found += check_console(block, folder)
    return found
