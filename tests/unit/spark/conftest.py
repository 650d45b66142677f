import pytest
from support.spark.copier import Copier
from support.spark.embedded_spark import shared_session


@pytest.fixture(scope="session")
def spark():
    return shared_session()


@pytest.fixture
def copy(tmp_path):
    return Copier(tmp_path)
