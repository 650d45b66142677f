"""A module of the user's that no Python can read has a digest all the same.

It may be one that only a newer Python imports, or be saved while a run starts.
"""

from support.fuzz.mutations import mutations, tolerate

from cutwater.flow.user_modules import user_modules

TEXT = b"""# coding: utf-8
import os
from . import rates

def price(amount: int) -> int:
    'Return it in cents.'
    return amount * 100 + len(f"{os.sep}")
"""


def test_a_module_that_went_wrong_is_none_of_the_others(tmp_path):
    file = tmp_path / "prices.py"

    def digests():
        return user_modules([], [str(file)]).digests

    file.write_bytes(TEXT)
    whole = digests()
    assert len(whole) == 1
    for data in mutations(TEXT, seed=4):
        file.write_bytes(data)
        tolerate(data, digests, ())
    file.write_bytes(b"match (:\n")
    assert digests() != whole
