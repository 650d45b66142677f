"""Kafka's own server as ordinary Java packages, fetched once: ``python tests/kafka_jars.py``.

They are resolved by Ivy, which comes with PySpark, from wherever Ivy is set up to look.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

VERSION = "4.3.1"
PACKAGES = [("org.apache.kafka", "kafka_2.13", VERSION), ("org.slf4j", "slf4j-simple", "1.7.36")]


def place() -> Path:
    """The folder of the jars, whether they are there or not."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "cutwater" / f"kafka-{VERSION}"


def fetch() -> None:
    """Fetch the jars; they are all there once their folder is."""
    import pyspark

    from cutwater.spark.embedded.java import java_home

    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    target = place()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        wanted = Path(folder, "wanted.xml")
        wanted.write_text(_wanted())
        command: list[str | Path] = [java_home() / "bin" / "java", "-jar", ivy, "-ivy", wanted]
        command += ["-cache", Path(folder, "cache"), "-types", "jar", "bundle"]
        command += ["-retrieve", f"{folder}/jars/[artifact]-[revision].[ext]"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode or not list(Path(folder, "jars").glob("kafka_*.jar")):
            sys.exit(f"Kafka {VERSION} could not be fetched:\n{done.stdout[-2000:]}")
        shutil.rmtree(target, ignore_errors=True)
        Path(folder, "jars").rename(target)


def _wanted() -> str:
    needs = "".join(
        f'<dependency org="{org}" name="{name}" rev="{version}" conf="default->default"/>'
        for org, name, version in PACKAGES
    )
    return (
        '<ivy-module version="2.0"><info organisation="cutwater" module="services"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{needs}</dependencies></ivy-module>"
    )


if __name__ == "__main__" and not place().is_dir():
    print(f"Fetching Kafka {VERSION} into {place()} (a few minutes)", flush=True)
    fetch()
