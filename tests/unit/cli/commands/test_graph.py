"""``cutwater graph``: to standard output or to a file, by its name."""

from pathlib import Path

import pytest
from support.repo.package import ROOT


def test_mermaid_by_default(cli, write):
    write()
    done = cli("graph", "job.py:flow")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("flowchart LR\n")


def test_the_name_of_the_file_chooses_the_format(cli, write, tmp_path):
    write()
    for name, start in (("a.svg", "<svg"), ("a.mmd", "flowchart"), ("a.txt", "flowchart")):
        done = cli("graph", "job.py:flow", "--out", name)
        assert (done.code, done.out, done.err) == (0, "", "")
        assert (tmp_path / name).read_text().startswith(start)
    assert cli("graph", "job.py:flow", "--out", "a.txt", "--format", "svg").code == 0
    assert (tmp_path / "a.txt").read_text().startswith("<svg")


def test_the_picture_of_the_readme_is_what_it_makes(cli, tmp_path):
    target = f"{ROOT / 'examples' / 'averages.py'}:flow"
    assert cli("graph", target, "--out", str(tmp_path / "averages.svg")).code == 0
    drawn = (tmp_path / "averages.svg").read_text()
    assert drawn == (ROOT / "docs" / "averages.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--format", "png"], "unknown-format"),
        (["--out", "a.png"], "unknown-format"),
        (["--out", "a.pdf", "--mode", "microbatch"], "unknown-format"),
        (["--out", "no/such/folder.svg"], "unwritable-file"),
        (["--out", "."], "unwritable-file"),
    ],
)
def test_what_cannot_be_drawn_or_written_is_a_sentence(cli, write, arguments, code):
    write()
    done = cli("graph", "job.py:flow", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: [{code}]")
    assert not list(Path().glob("a.*"))
