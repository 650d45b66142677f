"""Where keys stand in a TOML file."""

from cutwater.spark.toml_lines import toml_lines_of

TEXT = '''# a comment = 1
top = 1

[run]  # [not.a.table]
a.b = "x = 1"
list = [
  "inner = 1",
  { x = [1] },
]
long = """
[not.a.table]
inner = 1
"""
after = 'it # is = "quoted"'
[sinks."a.b"]
"odd key" = 1

[[many]]
x = 1
'''


def test_lines():
    assert toml_lines_of(TEXT) == {
        ("top",): 2,
        ("run",): 4,
        ("run", "a"): 5,
        ("run", "a", "b"): 5,
        ("run", "list"): 6,
        ("run", "long"): 10,
        ("run", "after"): 14,
        ("sinks", "a.b"): 15,
        ("sinks", "a.b", "odd key"): 16,
        ("many",): 18,
        ("many", "x"): 19,
    }
