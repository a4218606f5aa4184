"""A real local Bedrock on a free port, real boto3 clients, and moto's server as S3."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local_bedrock.server import running
from tests.local_bedrock.support import REGION, Bedrock, Source, client
from tests.support.language_model import LanguageModel, language_model

_numbers = itertools.count()


@pytest.fixture(scope="session", autouse=True)
def _credentials() -> None:
    os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_DEFAULT_REGION=REGION)
    os.environ.update(AWS_CONFIG_FILE=os.devnull, AWS_SHARED_CREDENTIALS_FILE=os.devnull)
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_SESSION_TOKEN"):
        os.environ.pop(name, None)


@pytest.fixture(scope="session")
def s3_url() -> Iterator[str]:
    server = pytest.importorskip("moto.server", reason="needs moto[server]").ThreadedMotoServer(
        ip_address="127.0.0.1", port=0, verbose=False
    )
    server.start()
    _host, port = server.get_host_and_port()
    yield f"http://127.0.0.1:{port}"
    server.stop()


@pytest.fixture(scope="session")
def s3(s3_url: str) -> Any:
    return client("s3", s3_url)


@pytest.fixture
def bucket(s3: Any) -> str:
    name = f"documents-{os.getpid()}-{next(_numbers)}"
    s3.create_bucket(Bucket=name)
    return name


@pytest.fixture(scope="session")
def bedrock(tmp_path_factory: pytest.TempPathFactory, s3_url: str) -> Iterator[Bedrock]:
    with running(tmp_path_factory.mktemp("bedrock"), s3_endpoint=s3_url) as url:
        yield Bedrock.at(url)


@pytest.fixture(scope="session")
def model() -> Iterator[LanguageModel]:
    with language_model() as served:
        yield served


@pytest.fixture(scope="session")
def forwarding(tmp_path_factory: pytest.TempPathFactory, model: LanguageModel) -> Iterator[Bedrock]:
    """A local Bedrock whose answers come from *model*."""
    with running(tmp_path_factory.mktemp("forwarding"), llm_url=model.url) as url:
        yield Bedrock.at(url)


@pytest.fixture
def knowledge_base(bedrock: Bedrock) -> str:
    return bedrock.knowledge_base("kb")


@pytest.fixture
def custom(bedrock: Bedrock, knowledge_base: str) -> Source:
    return bedrock.custom_source(knowledge_base)


@pytest.fixture
def s3_source(bedrock: Bedrock, knowledge_base: str, bucket: str) -> Source:
    return bedrock.s3_source(knowledge_base, bucket)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    folder = Path(os.environ.get("RAGSTACK_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the evaluation data is not on this machine (RAGSTACK_SHARED_DATA)")
    return folder
