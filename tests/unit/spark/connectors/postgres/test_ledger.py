"""Who took a table, in words; what the ledger does is tested on a server, in `test_sink`."""

import pytest

from cutwater.spark.connectors.base.sink import Claim
from cutwater.spark.connectors.postgres.ledger import LedgerHeader, _taken


@pytest.mark.parametrize(
    ("held", "message"),
    [
        (None, "another one has claimed it meanwhile"),
        (
            LedgerHeader(1, "plant", "means", "q", 4, newest_epoch=7),
            "generation 4 of flow 'plant' has claimed it meanwhile",
        ),
    ],
)
def test_a_table_that_was_taken_names_who_took_it(held, message):
    error = _taken("public.means", Claim("plant", "means", "q", 3, "state"), held)
    assert error.problems[0].code == "fenced"
    assert error.problems[0].message.endswith(message)
