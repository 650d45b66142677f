"""Targets that lead nowhere: a sentence on standard error, exit code 2, nothing else."""

import subprocess
import sys

import pytest

NOT_IMPORTING = {
    "syntax": ("flow = (\n", "SyntaxError"),
    "name": (
        "import cutwater\n\nflow = undefined\n",
        "NameError: name 'undefined' is not defined (line 3 of",
    ),
    "import": ("import no_such_module_at_all\n", "ModuleNotFoundError"),
    "exit": ("import sys\nsys.exit(0)\n", "SystemExit"),
    "raise": ("raise KeyError('lost')\n", "KeyError: 'lost' (line 1 of job.py)"),
}
HERE = "<the folder of the test>"


def assert_refused(done, code, *words):
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith(f"error: [{code}] ")
    assert "Traceback" not in done.err
    for word in words:
        assert word in done.err


@pytest.mark.parametrize("verb", ["simulate", "graph"])
@pytest.mark.parametrize("case", NOT_IMPORTING)
def test_a_file_that_does_not_import(cli, write, verb, case):
    text, message = NOT_IMPORTING[case]
    path = write(text)
    assert_refused(cli(verb, f"{path}:flow"), "target-does-not-import", str(path), message)


def test_a_file_that_does_not_import_is_tried_again(cli, write):
    write("flow = undefined\n")
    assert cli("simulate", "job.py:flow").code == 2
    write()
    assert cli("simulate", "job.py:flow").code == 0


def test_debug_shows_the_traceback(cli, write):
    write("flow = undefined\n")
    for arguments in (
        ["--debug", "simulate", "job.py:flow"],
        ["simulate", "job.py:flow", "--debug"],
    ):
        done = cli(*arguments)
        assert done.code == 2
        assert "Traceback" in done.err
        assert "flow = undefined" in done.err
        assert "error: [target-does-not-import]" in done.err


@pytest.mark.parametrize(
    ("target", "code", "message"),
    [
        ("job.py:number", "not-a-flow", "job.py:number is a int; a flow is needed"),
        ("job.py:flaw", "unknown-name", "did you mean 'flow'?"),
        ("job.py:xyz", "unknown-name", "its flows: flow"),
        ("gone.py:flow", "no-such-file", f"there is no file gone.py in {HERE}"),
        ("/no/such/gone.py:flow", "no-such-file", "there is no file /no/such/gone.py\n"),
        ("jobs:flow", "unknown-name", "jobs is a folder"),
        ("jobs:flow", "unknown-name", "jobs/FILE.py:flow"),
        ("no.such.module:flow", "unknown-module", "no.such.module"),
        ("no_such_module", "unknown-module", "no_such_module"),
        ("", "unknown-module", ""),
        ("job.py:", "unknown-module", ""),
        (".:flow", "", ""),
    ],
)
def test_a_target_that_leads_nowhere(cli, write, target, code, message):
    path = write()
    write(name="jobs/job.py")
    done = cli("simulate", target)
    assert done.code == 2
    assert done.err.startswith(f"error: [{code}" if code else "error: [")
    assert message.replace(HERE, str(path.parent)) in done.err
    assert "Traceback" not in done.err


def test_the_only_flow_needs_no_name(cli, write):
    write()
    assert cli("simulate", "job.py").code == 0
    assert cli("simulate", "job").code == 0


def test_of_several_flows_one_is_named(cli, write):
    write("import cutwater as cw\na = cw.Flow('a')\nb = cw.Flow('b')\n")
    assert_refused(cli("graph", "job.py"), "which-flow", "2 flows: a, b")
    write("x = 1\n", "nothing_job.py")
    assert_refused(cli("graph", "nothing_job.py"), "which-flow", "no flow")


def test_all_problems_of_a_flow_are_reported(cli, write):
    write("import cutwater as cw\nflow = cw.Flow('a')\nflow.source('x', int).map(abs)\n")
    for verb in ("simulate", "graph"):
        done = (
            cli(verb, "job.py:flow")
            if verb == "graph"
            else cli(verb, "job.py:flow", "--inputs", "job:flow")
        )
        assert done.code == 2
        assert "Traceback" not in done.err
    assert "[no-sink]" in done.err
    assert "[unused-step]" in done.err


WITHOUT_EXTRAS = """
import sys


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"numpy", "pandas", "pyarrow", "pyspark"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent())
from cutwater.cli import main

main(sys.argv[1:])
"""


@pytest.mark.parametrize("command", ["run job.py:flow", "state here step", "checkpoint show here"])
def test_an_installation_without_spark_says_which_extra_it_lacks(write, command):
    write()
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, *command.split()],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: [no-spark] this command needs the package 'numpy'")
    assert "pip install 'cutwater[spark,java]'" in done.stderr


def test_a_file_that_imports_what_an_extra_brings_says_which(write):
    write("import numpy\n")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, "simulate", "job.py:flow"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: [target-does-not-import] job.py cannot be imported: Mod")
    assert "hint: pip install 'cutwater[spark,java]'" in done.stderr
