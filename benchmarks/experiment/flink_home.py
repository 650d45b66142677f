"""Flink as it comes with PyFlink, PostgreSQL's driver, and the Java classes of this folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cutwater.spark.embedded.java import java_home

__all__ = ["PYTHON", "build", "class_path", "java", "why_not"]

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE.parent / "peers" / ".venv-pyflink"
PYTHON = ENVIRONMENT / "bin" / "python"
BUILT = HERE / ".build"
DRIVER = "42.7.7"
_WANTED = f"""<ivy-module version="2.0"><info organisation="cutwater" module="experiment"/>
<dependencies><dependency org="org.postgresql" name="postgresql" rev="{DRIVER}"
conf="default->default" transitive="false"/></dependencies></ivy-module>"""


def why_not() -> str | None:
    """A sentence, if Flink's sides cannot run."""
    if not PYTHON.exists():
        reason = ENVIRONMENT.with_name(".venv-pyflink.failed")
        said = reason.read_text().strip() if reason.exists() else "run scripts/peers pyflink"
        return f"Flink is left out: its environment is not there ({said})."
    if compiler() is None:
        return "Flink is left out: no javac was found by JAVA_HOME or on PATH; install a JDK."
    return None


def java() -> Path:
    """The Java launcher."""
    return java_home() / "bin" / "java"


def compiler() -> str | None:
    """The Java compiler, if there is one."""
    beside = java_home() / "bin" / "javac"
    return str(beside) if beside.exists() else shutil.which("javac")


def class_path() -> list[Path]:
    """Flink's jars, the driver, and our classes, which PyFlink takes as a jar."""
    (flink,) = ENVIRONMENT.glob("lib/python3*/site-packages/pyflink")
    return [*sorted((flink / "lib").glob("*.jar")), _driver(), BUILT / "experiment.jar"]


def build() -> None:
    """Fetch the driver and compile; does nothing for what is there and not older."""
    sources, target = sorted((HERE / "flink").glob("*.java")), BUILT / "experiment.jar"
    BUILT.mkdir(exist_ok=True)
    if not _driver().exists():
        _fetch_driver()
    if target.exists() and all(target.stat().st_mtime > s.stat().st_mtime for s in sources):
        return
    with tempfile.TemporaryDirectory() as classes:
        path = ":".join(map(str, class_path()[:-1]))
        _run([str(compiler()), "-nowarn", "-cp", path, "-d", classes, *map(str, sources)])
        shutil.make_archive(str(target.with_suffix("")), "zip", classes)
    target.with_suffix(".zip").rename(target)


def _driver() -> Path:
    return BUILT / f"postgresql-{DRIVER}.jar"


def _fetch_driver() -> None:
    """By Ivy, which comes with PySpark, from wherever Ivy is set up to look."""
    import pyspark

    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder, "wanted.xml")
        wanted.write_text(_WANTED)
        command = [str(java()), "-jar", str(ivy), "-ivy", str(wanted), "-cache", f"{folder}/cache"]
        _run([*command, "-types", "jar", "bundle", "-retrieve", f"{folder}/[artifact].[ext]"])
        shutil.copy(Path(folder, "postgresql.jar"), _driver())


def _run(command: list[str]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{command[0]} failed:\n{done.stdout[-2000:]}")
