import pytest
from support.connectors.postgres_sink import Out


@pytest.fixture
def out(postgres, tmp_path):
    return Out(postgres, tmp_path).ready()


@pytest.fixture
def make_out(postgres, tmp_path):
    return lambda **settings: Out(postgres, tmp_path, **settings)
