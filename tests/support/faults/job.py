"""A run of the counting flow, as a script that a user would write: ``job.py SETTINGS``.

The settings are JSON: a folder to read or a rate to make events at, what each sink is bound to,
and the checkpoint.
"""

import json
import os
import sys
from dataclasses import asdict

from pyspark.sql import SparkSession
from support.faults.counting import SOURCE, click, flow_to
from support.faults.traps import VARIABLE, Trapped

import cutwater.spark
from cutwater.errors import CutwaterError
from cutwater.spark import runner
from cutwater.spark.embedded.java import java_home
from cutwater.spark.embedded.session import _SETTINGS

LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
TRAVELLING = ("PYTHONPATH", VARIABLE)


def binding(of):
    """Bind a sink to what is said: the name of a function and what it takes."""
    made = getattr(cutwater.spark, of["kind"])
    return Trapped(made(**{name: value for name, value in of.items() if name != "kind"}))


def source(settings):
    """Bind the source to a folder, or to a generator."""
    if "rows_per_second" in settings:
        rate, total = settings["rows_per_second"], settings["total"]
        return cutwater.spark.generate(click, rows_per_second=rate, total=total)
    return cutwater.spark.json_lines(settings["source"], settings["max_bytes_per_epoch"])


def session(settings):
    """Make a session with more settings, as one that a user passes; none if there are none."""
    if not settings["conf"]:
        return None
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    given = {f"spark.executorEnv.{name}": os.environ.get(name, "") for name in TRAVELLING}
    builder = SparkSession.builder.master(settings["master"]).appName("counting")
    for name, value in {**_SETTINGS, **LOOPBACK, **given, **settings["conf"]}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main(settings):
    """Run; what the run says of itself goes to the output, a refusal to the other one."""
    spark = session(settings)
    runner.LOCK_WAIT_SECONDS = settings["lock_wait_seconds"]
    try:
        result = cutwater.spark.run(
            flow_to(settings["sinks"]),
            spark,
            sources={SOURCE: source(settings)},
            sinks={name: binding(of) for name, of in settings["sinks"].items()},
            checkpoint=settings["checkpoint"],
            until=settings["until"],
            master=settings["master"],
            settings=settings.get("settings", {}),
            **settings.get("asked", {}),
            tell=lambda sentence: print(sentence, file=sys.stderr, flush=True),
        )
    except CutwaterError as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(asdict(result)))
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
