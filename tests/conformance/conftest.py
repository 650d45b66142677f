import pytest
from support.spark.embedded_spark import shared_session


@pytest.fixture(scope="session")
def spark():
    return shared_session()
