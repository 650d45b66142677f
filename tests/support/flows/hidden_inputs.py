"""Functions that look pure in one process: only another one, or another order, tells."""

from __future__ import annotations

import datetime as dt
import os
import random
import secrets
import time
import uuid
from itertools import count

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
