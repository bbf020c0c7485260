"""The overlays, each built once."""

import pytest
from tests.deploy.overlays import Built, build


@pytest.fixture(scope="module", params=["dev", "prod", "prod with relay"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    name, _, component = request.param.partition(" with ")
    return build(tmp_path_factory.mktemp("kubernetes"), name, *([component] if component else []))
