"""What an observer of a Delta table sees, also of one that something else has written."""

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake

from cutwater.observers.delta import DeltaObserver


def test_rows_and_epochs(tmp_path):
    path = str(tmp_path / "table")
    properties = CommitProperties(custom_metadata={"cutwater": {"epoch": 3, "rows": 2}})
    columns = {"n": [1, 2], "m": [{"a": 1}, {}]}
    schema = pa.schema([("n", pa.int64()), ("m", pa.map_(pa.string(), pa.int64()))])
    table = pa.table({"n": columns["n"], "m": [list(m.items()) for m in columns["m"]]}, schema)
    write_deltalake(path, table, commit_properties=properties)
    write_deltalake(path, table.slice(1), mode="append")
    observer = DeltaObserver(path)
    rows = [{"n": 1, "m": {"a": 1}}, {"n": 2, "m": {}}, {"n": 2, "m": {}}]
    assert sorted(observer.rows(), key=lambda row: row["n"]) == rows
    assert observer.epochs() == {3: 2}
    assert observer.files() == 2
