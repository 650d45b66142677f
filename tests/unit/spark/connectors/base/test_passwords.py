"""Passwords are looked up in the same way for every system that has one."""

import pytest

from cutwater.errors import RefusedError
from cutwater.spark.connectors.base.passwords import password_from, password_problems
from cutwater.spark.connectors.kafka.settings import Cluster
from cutwater.spark.connectors.postgres.settings import Database

LOOK_UPS = {
    "kafka": lambda env, file: Cluster("there:9092", (), env, file).client().get("sasl.password"),
    "postgres": lambda env, file: Database("dbname=d", env, file).password("sink 'out'"),
}


@pytest.fixture(params=LOOK_UPS)
def look_up(request):
    return LOOK_UPS[request.param]


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_the_line_end_of_a_file_is_no_part_of_the_password(look_up, tmp_path, end):
    file = tmp_path / "password"
    file.write_bytes(b"hush " + end.encode())
    assert look_up(None, str(file)) == "hush "


def test_without_a_place_there_is_no_password(look_up):
    assert look_up(None, None) is None


@pytest.mark.parametrize(
    ("env", "file"), [("NOT_SET_ANYWHERE", None), ("", None), (None, "not-there")]
)
def test_a_place_without_a_password_is_refused(look_up, env, file):
    with pytest.raises(RefusedError) as error:
        look_up(env, file)
    assert [problem.code for problem in error.value.problems] == ["no-password"]


def test_messages_name_the_place_and_the_way_out(tmp_path):
    with pytest.raises(RefusedError) as error:
        password_from("sink 'out'", "NOT_SET_ANYWHERE", None)
    assert str(error.value.problems[0]) == (
        "[no-password] sink 'out' has its password in the environment variable "
        "'NOT_SET_ANYWHERE', which is not set in this process\n"
        "  hint: set it for the driver and for every executor, or use password_file"
    )
    with pytest.raises(RefusedError) as error:
        password_from("sink 'out'", None, str(tmp_path / "gone"))
    assert "which cannot be read: No such file or directory" in str(error.value)


def test_two_places_are_refused():
    (problem,) = password_problems("sink 'out'", "A", "b")
    assert problem.code == "two-passwords"
    assert list(password_problems("sink 'out'", "A", None)) == []
