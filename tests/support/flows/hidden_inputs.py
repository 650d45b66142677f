"""Functions that look pure in one process: only another one, or another order, tells."""

from __future__ import annotations

import datetime as dt
import os
import random
import secrets
import shutil
import sys
import textwrap
import time
import uuid
from itertools import count
from pathlib import Path
from time import localtime as local_time
from time import time as bound_time

from support.flows import caching_helper
from support.flows.caching_helper import remembered

import cutwater as cw


def cached(word: str) -> int:
    return remembered(word[:1], len(word))


def cached_through_its_module(word: str) -> int:
    return caching_helper.remembered(word[:1], len(word))


def this_year(word: str) -> int:
    return dt.datetime.now().year


def local_year(word: str) -> int:
    return time.localtime().tm_year


def time_zone(word: str) -> str:
    return time.strftime("%H", time.localtime(0))


def user(word: str) -> str:
    return os.environ.get("USER", "") + os.environ.get("CI", "") + os.environ.get("LANG", "x")


def bound_clock(word: str) -> int:
    return int(bound_time()) // 86_400


def bound_local_time(word: str) -> int:
    return local_time().tm_year


def day(word: str) -> str:
    return time.strftime("%Y-%m-%d")


def year_of_text(word: str) -> str:
    return time.asctime()[-4:]


def is_morning(word: str) -> bool:
    return dt.datetime.now(dt.UTC).hour < 12


def is_weekend(word: str) -> bool:
    return dt.datetime.now(dt.UTC).weekday() >= 5


def is_new(word: str) -> bool:
    return dt.datetime.now(dt.UTC).year >= 2020


def has_run_for_long(word: str) -> bool:
    return time.perf_counter() > 1_000


def program(word: str) -> str:
    return sys.argv[0]


RUN = uuid.uuid4()
STARTED = time.time()


def of_this_run(word: str) -> str:
    return f"{RUN} {STARTED}"


def clock_of_the_system(word: str) -> int:
    return int(time.clock_gettime(time.CLOCK_REALTIME)) // 86_400


def unset_switch(word: str) -> str:
    return word.upper() if os.environ.get("CUTTER_UPPER") else word


def unset_getenv(word: str) -> str:
    return word.upper() if os.getenv("CUTTER_UPPER") == "1" else os.getenv("CUTTER_UPPER", word)


def unset_in(word: str) -> bool:
    return "CUTTER_DEBUG" in os.environ


def home(word: str) -> str:
    return str(Path.home())


def folder(word: str) -> str:
    return str(Path.cwd())


def temporary_folder(word: str) -> str:
    return os.environ.get("TMPDIR", "")


def quiet_library(word: str) -> int:
    """A library that asks for a variable which nobody set gets none."""
    return textwrap.TextWrapper(shutil.get_terminal_size().columns).width


def joined(words: str) -> str:
    return "".join(set(words))


def length_of_word(given: object) -> int:
    return len(given.word)


def endless(word: str) -> object:
    return count()


def hangs_when_cold(word: str) -> str:
    while not hasattr(hangs_when_cold, "warm"):
        pass
    return word


def counting():
    seen = 0

    def f(word: str) -> int:
        nonlocal seen
        seen = seen + 1
        return 0

    return f


flow = cw.Flow("hash order")
flow.sink("out", flow.source("words", str).map(lambda words: "".join(set(words))))
inputs = {"words": ["ab"]}

flow_of_chance = cw.Flow("chance")
words_of_chance = flow_of_chance.source("words", str)
CHANCE = {
    "random": lambda _word: random.random(),
    "time": lambda _word: time.time(),
    "date": lambda _word: str(dt.datetime.now()),
    "uuid": lambda _word: str(uuid.uuid4()),
    "secrets": lambda _word: secrets.token_hex(4),
}
for name, f in CHANCE.items():
    flow_of_chance.sink(name, words_of_chance.map(f, name=f"of {name}"))
