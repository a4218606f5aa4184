"""The data files of botocore, reduced to what the functions read."""

import gzip
import json
import shutil
import ssl
from pathlib import Path
from typing import Any

import botocore
import botocore.session
import pytest
from botocore.loaders import Loader

from infra.layers import AWS_SERVICES
from infra.sdk_data import AWS_AUTHORITIES, reduce_certificates, reduce_data


def write(file: Path, content: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content).encode()
    file.write_bytes(gzip.compress(text) if file.suffix == ".gz" else text)


def test_services_that_are_not_kept_lose_their_descriptions_and_addresses(tmp_path: Path) -> None:
    kept = {"metadata": {"endpointPrefix": "monitoring"}}
    write(tmp_path / "cloudwatch" / "2010-08-01" / "service-2.json.gz", kept)
    write(tmp_path / "iot" / "2015-05-28" / "service-2.json.gz", {"metadata": {"endpointPrefix": "iot"}})
    services: dict[str, Any] = {"iot": {"endpoints": {"eu-west-1": {}}}, "monitoring": {"endpoints": {"us-east-1": {}}}}
    write(tmp_path / "endpoints.json", {"partitions": [{"partition": "aws", "services": services}], "version": 3})

    reduce_data(tmp_path, {"cloudwatch"})

    left = json.loads((tmp_path / "endpoints.json").read_text())
    expected = {"partition": "aws", "services": {"monitoring": services["monitoring"]}}
    assert left == {"partitions": [expected], "version": 3}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cloudwatch", "endpoints.json"]


def test_files_that_are_links_to_a_cache_stay_as_they_are(tmp_path: Path) -> None:
    """As uv installs packages."""
    cached, data = tmp_path / "cache.json", tmp_path / "data"
    data.mkdir()
    write(cached, {"partitions": [{"partition": "aws", "services": {"iot": {}}}]})
    before = cached.read_bytes()
    (data / "endpoints.json").hardlink_to(cached)

    reduce_data(data, set())

    assert cached.read_bytes() == before
    assert json.loads((data / "endpoints.json").read_text()) == {"partitions": [{"partition": "aws", "services": {}}]}


def test_a_member_called_documentation_is_no_documentation(tmp_path: Path) -> None:
    members = {"documentation": {"shape": "Text", "documentation": "<p>What it is.</p>"}}
    shapes = {"Page": {"type": "structure", "members": members, "documentation": "<p>A page.</p>"}}
    description = {"metadata": {"endpointPrefix": "wiki"}, "shapes": shapes, "documentation": "<p>Pages.</p>"}
    write(tmp_path / "wiki" / "2026-01-01" / "service-2.json.gz", description)
    write(tmp_path / "endpoints.json", {"partitions": []})

    reduce_data(tmp_path, {"wiki"})

    [left] = tmp_path.glob("wiki/*/*")
    assert left.name == "service-2.json"
    assert json.loads(left.read_text()) == {
        "metadata": {"endpointPrefix": "wiki"},
        "shapes": {"Page": {"type": "structure", "members": {"documentation": {"shape": "Text"}}}},
    }


def authorities(file: Path) -> list[bytes]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(file)
    return context.get_ca_certs(binary_form=True)


def test_functions_trust_the_authorities_of_aws_alone(tmp_path: Path) -> None:
    """The installed botocore has a certificate of each of them, and the cache of the installer keeps all others."""
    complete, file = Path(botocore.__file__).parent / "cacert.pem", tmp_path / "cacert.pem"
    shutil.copyfile(complete, tmp_path / "cache.pem")
    file.hardlink_to(tmp_path / "cache.pem")

    reduce_certificates(file)

    left = authorities(file)
    assert len(left) == len(AWS_AUTHORITIES)
    assert {*left} < {*authorities(complete)}
    assert (tmp_path / "cache.pem").read_bytes() == complete.read_bytes()


@pytest.fixture(scope="module")
def reduced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of the installed botocore for the services of the functions."""
    installed, data = Path(botocore.__file__).parent / "data", tmp_path_factory.mktemp("data")
    for path in installed.iterdir():
        if path.name in AWS_SERVICES:
            shutil.copytree(path, data / path.name)
        elif path.is_file():
            shutil.copyfile(path, data / path.name)
    reduce_data(data, AWS_SERVICES)
    return data


@pytest.mark.parametrize("service", sorted(AWS_SERVICES))
def test_each_kept_service_has_a_client(reduced: Path, service: str) -> None:
    """The client is made from the reduced data alone."""
    session = botocore.session.Session()
    session.register_component(
        "data_loader", Loader(extra_search_paths=[str(reduced)], include_default_search_paths=False)
    )

    client: Any = session.create_client(service, "eu-west-1", aws_access_key_id="x", aws_secret_access_key="x")

    # Read by the first call, to find the address.
    assert client.meta.service_model.client_context_parameters is not None
    if service == "s3":
        url = client.generate_presigned_url("head_object", {"Bucket": "documents", "Key": "leave.md"})
        assert url.startswith("https://documents.s3.eu-west-1.amazonaws.com/leave.md?")
