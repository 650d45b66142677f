import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

pytest_plugins = [
    "support.repo.not_run",
    "support.browser.chromium",
    "support.connectors.kafka_broker",
    "support.connectors.postgres_server",
    "support.connectors.postgres_sink",
    "pytester",
]

# The JVMs of tests live for seconds: what the optimising compiler makes of their code never pays,
# and costs a third of their CPU. An inherited variable wins.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_JVM)
os.environ.setdefault("SPARK_LAUNCHER_OPTS", QUICK_JVM)

ORDER = ["repo", "unit", "laws", "model", "snapshots", "regress", "conformance", "faults"]
TESTS = Path(__file__).parent

# "default" tries the same examples in every run; HYPOTHESIS_PROFILE=thorough looks for new ones.
COMMON = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("default", COMMON, max_examples=100, derandomize=True)
settings.register_profile("thorough", COMMON, max_examples=5000, derandomize=False)
# "mutants" only has to notice: what it finds is not made small
settings.register_profile(
    "mutants", COMMON, max_examples=100, derandomize=True, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def place(item: pytest.Item) -> tuple[bool, int]:
    """Quick tests come before slow ones; among these the directories are in ORDER."""
    is_slow = any(item.get_closest_marker(name) for name in ("slow", "spark"))
    is_of_example = not item.path.is_relative_to(TESTS)
    directory = "conformance" if is_of_example else item.path.relative_to(TESTS).parts[0]
    if directory not in ORDER:
        raise pytest.UsageError(f"{item.path}: a test goes into one of {', '.join(ORDER)}")
    return is_slow, ORDER.index(directory)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=place)
