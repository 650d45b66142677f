"""``cutwater guarantee``: what it prints, as text, data and a page."""

import json
from pathlib import Path

import pytest
from support.repo.pinned import assert_pinned

SNAPSHOTS = Path(__file__).parents[3] / "snapshots" / "cli"

SHOPS = """
from dataclasses import dataclass
import cutwater as cw

@dataclass(frozen=True)
class Order:
    shop: str
    cents: int

@cw.task(initial=0, commutative=True)
def turnover(total: int, order: Order) -> tuple[int, list[Order]]:
    return total + order.cents, []

@cw.task(initial=0, commutative=True, idempotent=True)
def newest(_: int, order: Order) -> tuple[int, list[Order]]:
    return order.cents, []

def mailed(epoch, bucket, rows):
    pass

flow = cw.Flow("shops")
orders = flow.source("orders", Order).key_by("shop")
flow.sink("totals", orders.apply(turnover))
flow.sink("latest", orders.apply(newest))
inputs = {"orders": [Order("a", 1), Order("a", 2), cw.BARRIER, Order("b", 1)]}
"""
CONFIG = """
[sources.orders]
kind = "json-lines"
path = "in"

[sinks.totals]
kind = "call"
function = "job:mailed"

[sinks.latest]
kind = "postgres"
table = "latest"
dsn = "host=localhost"
"""


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setattr("cutwater.cli.screen.stdout.width", 100)


def test_the_text(cli, write):
    path = write(SHOPS)
    done = cli("guarantee", f"{path}:flow")
    assert done.code == 0
    assert_pinned(SNAPSHOTS / "guarantee.txt", tidy(done.out))


def test_the_whole_text(cli, write):
    path = write(SHOPS)
    done = cli("guarantee", f"{path}:flow", "--verbose")
    assert_pinned(SNAPSHOTS / "guarantee-verbose.txt", tidy(done.out).replace(str(path), "job.py"))


LOOP = """
import cutwater as cw

def parity(n: int) -> int:
    return n % 2

def halves(n: int) -> list[int]:
    return [n // 2] if n > 1 else []

def same(time: object, n: int) -> int:
    return n

def halving(stream):
    {body}
    return by_parity.flat_map(halves)

flow = cw.Flow("halves")
flow.sink("out", flow.source("numbers", int).iterate(halving, name="halve"))
inputs = {{"numbers": [8, 5]}}
"""


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (
            "by_parity = stream.key_by(parity)",
            "on Spark:\nloop 'halve': one iteration per epoch, input epochs at once\n",
        ),
        (
            "by_parity = stream.key_by(parity).map_values(same)",
            "loop 'halve': all iterations in one epoch, in one bucket: 'same' in its body depends "
            "on event times",
        ),
    ],
)
def test_how_a_loop_iterates_is_reported(cli, write, body, told):
    done = cli("guarantee", f"{write(LOOP.format(body=body))}:flow")
    assert done.code == 0, done.err
    assert told in done.out


def tidy(text):
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def test_the_data(cli, write):
    done = cli("guarantee", f"{write(SHOPS)}:flow", "--json")
    data = json.loads(done.out)
    assert (done.code, data["flow"], data["inputs"], data["events"]) == (0, "shops", 1, 3)
    assert data["checked"] is None
    turnover, newest = data["steps"]
    assert (turnover["order_matters"], newest["order_matters"]) == ("no", "yes")
    assert [c["verdict"] for c in newest["claims"]] == ["violated", "not refuted"]
    assert newest["witness"].splitlines()[1].strip().startswith("Order(shop='a', cents=1)  then")
    ordered, reordered = data["settings"]
    assert {row["guarantee"] for row in ordered["end_to_end"]} == {"exactly-once"}
    assert {
        (row["sink"], row["release"]): (row["guarantee"], row["relies_on"])
        for row in reordered["end_to_end"]
    } == {
        ("totals", "commit"): ("exactly-once", ["turnover"]),
        ("totals", "early"): ("at-least-once", []),
        ("latest", "commit"): ("at-least-once", []),
        ("latest", "early"): ("at-least-once", []),
    }
    assert [o["before_snapshot"] for o in ordered["outputs"]] == [True, True]
    assert [o["before_snapshot"] for o in reordered["outputs"]] == [False, False]


def test_inputs_are_made_up_where_there_are_none(cli, write):
    path = write(SHOPS.replace("inputs =", "other ="))
    one, two = (json.loads(cli("guarantee", f"{path}:flow", "--json").out) for _ in range(2))
    assert one == two
    assert one["inputs"] == 10
    named = cli("guarantee", f"{path}:flow", "--json", "--inputs", f"{path}:other")
    assert json.loads(named.out)["inputs"] == 1


def test_a_check_that_found_nothing_is_known(cli, write):
    path = write(SHOPS.replace("commutative=True, idempotent=True", "idempotent=True"))
    assert cli("check", f"{path}:flow", "--crashes", "1").code == 0
    out = cli("guarantee", f"{path}:flow", "--verbose").out
    assert "as far as check went" in out
    assert "which it relies on (`check` tested it)" in out
    assert "not checked" not in out
    assert json.loads(cli("guarantee", f"{path}:flow", "--json").out)["checked"]["inputs"] == 1


def test_what_is_wrong_is_a_sentence(cli, write):
    path = write(SHOPS)
    for arguments, message in [
        ((f"{path}:flows",), "has no 'flows'"),
        ((f"{path}:flow", "--inputs", f"{path}:flow"), "inputs are a dict"),
        ((f"{path}:flow", "--config", "none.toml"), "cannot be read"),
        ((f"{path}:flow", "--html", "no/such/folder.html"), "cannot be written"),
    ]:
        done = cli("guarantee", *arguments)
        assert (done.code, message in done.err) == (2, True), done.err


def test_the_page_is_written(cli, write):
    path = write(SHOPS)
    assert cli("guarantee", f"{path}:flow", "--html", "page.html").code == 0
    page = path.with_name("page.html").read_text()
    assert "<h1>shops: what it guarantees</h1>" in page
    assert not path.with_name(".cutwater").exists()


def test_a_configuration_says_what_there_is(cli, write):
    path = write(SHOPS)
    path.with_name("in").mkdir()
    config = path.with_name("run.toml")
    config.write_text(CONFIG)
    done = cli("guarantee", f"{path}:flow", "--config", config, "--json")
    (setting,) = json.loads(done.out)["settings"]
    assert (done.code, setting["title"]) == (0, "as in run.toml, on the micro-batch engine")
    mailed, *latest = setting["end_to_end"]
    assert (mailed["sink"], mailed["release"], mailed["guarantee"]) == (
        "totals",
        "early",
        "at-least-once",
    )
    (weak,) = mailed["weakest_first"]
    assert (weak["part"], weak["guarantee_then"]) == ("totals", "exactly-once")
    assert [(row["release"], row["guarantee"]) for row in latest] == [
        ("commit", "exactly-once"),
        ("early", "exactly-once"),
    ]
    assert (
        "as in run.toml, on the micro-batch engine: from end to end"
        in cli("guarantee", f"{path}:flow", "--config", config).out
    )


def test_the_engine_of_a_configuration_is_named_and_releases_rows_in_its_way(cli, write):
    path = write(SHOPS)
    path.with_name("in").mkdir()
    config = path.with_name("run.toml")
    config.write_text(f'[run]\nmode = "realtime"\n{CONFIG}')
    (setting,) = json.loads(cli("guarantee", f"{path}:flow", "--config", config, "--json").out)[
        "settings"
    ]
    assert setting["title"] == "as in run.toml, on the real-time engine"
    assert [(row["sink"], row["release"]) for row in setting["end_to_end"]] == [
        ("totals", "early"),
        ("latest", "early"),
    ]


def test_what_the_engine_of_a_configuration_cannot_run_is_refused(cli, write):
    path = write(SHOPS)
    path.with_name("in").mkdir()
    config = path.with_name("run.toml")
    early, _ = CONFIG.split("[sinks.latest]")
    folder = '[sinks.latest]\nkind = "folder"\npath = "out"\n'
    config.write_text(f'[run]\nmode = "realtime"\n{early}{folder}')
    refused = cli("guarantee", f"{path}:flow", "--config", config)
    assert refused.code == 2
    assert "[not-in-real-time]" in refused.err
