"""A local Bedrock that the tests of the engines share."""

from collections.abc import Iterator

import pytest

from local_bedrock.server import running
from tests.local_bedrock.support import REGION, Bedrock


@pytest.fixture(scope="package")
def bedrock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bedrock]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "test")
        patch.setenv("AWS_DEFAULT_REGION", REGION)
        with running(tmp_path_factory.mktemp("bedrock")) as url:
            yield Bedrock.at(url)
