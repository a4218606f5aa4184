"""A client that is generated from the description of the API works as it is, against the functions behind HTTP."""

import importlib
import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lambdas.documents import handler as documents
from lambdas.query import handler as query
from ragstack_common.http.description import describe
from ragstack_common.http.route_table import ROUTES
from ragstack_common.services.ask_models import EVENTS
from ragstack_common.settings.access import AccessSettings
from tests.ragstack_common.services.conftest import Aws, Call
from tests.support.api_server import BASE_PATH, api_server
from tests.support.aws_service import AwsService
from tests.support.events import api_event
from tests.support.knowledge_base import KNOWLEDGE_BASE, hit, hits

CLIENTS = Path(__file__).parents[3] / ".clients" / "bin"
GENERATOR = shutil.which("openapi-python-client", path=os.pathsep.join([str(CLIENTS), os.environ["PATH"]]))
OF_DOCUMENTS = ("/api/documents", "/api/facets", "/api/ingestion-jobs", "/api/judgments")
ISSUER = "https://login.example.com/"
DISCOVERED = {
    "type": "openIdConnect",
    "openIdConnectUrl": "https://login.example.com/.well-known/openid-configuration",
}
SECRET = "a-key-or-token-of-the-api"


@dataclass(frozen=True)
class Door:
    """How the callers of an API prove who they are, and what API Gateway tells the functions about it."""

    kind: str
    header: str
    value: str
    context: Mapping[str, Any]

    @property
    def headers(self) -> dict[str, str]:
        return {self.header: self.value}


DOORS = (
    Door("api_key", "x-api-key", SECRET, {"identity": {"apiKeyId": "abc"}}),
    Door("oidc", "Authorization", f"Bearer {SECRET}", {"authorizer": {"claims": '{"sub": "alice"}'}}),
)


@pytest.fixture(params=DOORS, ids=[door.kind for door in DOORS])
def door(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Door:
    chosen: Door = request.param
    env = {"API_AUTH": chosen.kind, "API_KEYS": '{"abc": "reader"}', "OIDC_ISSUER": ISSUER, "OIDC_AUDIENCE": "ragstack"}
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    return chosen


@pytest.fixture
def api(door: Door, aws: Aws, ask: Call, searches: AwsService) -> Iterator[str]:
    """The API behind a key or an authorizer, by its address without a path."""
    searches.program("Retrieve", hits(hit("s3://documents/a.md", 0.9, "Book early.")))
    functions = {True: documents.handler, False: query.handler}
    with api_server(lambda path: functions[path.startswith(OF_DOCUMENTS)], door.headers, door.context) as url:
        yield url


@pytest.fixture
def described(ask: Call) -> Callable[..., Any]:
    """The description that a stage serves."""

    def described(path: str = "/prod/openapi.json") -> Any:
        context = api_event("GET", "/openapi.json")["requestContext"]
        return ask("GET", "/openapi.json", requestContext={**context, "path": path})[1]

    return described


@pytest.mark.parametrize(
    ("path", "base"), [("/prod/openapi.json", "/prod"), ("/v1/openapi.json", "/v1"), ("/openapi.json", "")]
)
def test_the_server_of_the_description_is_the_address_with_the_stage(
    described: Callable[..., Any], path: str, base: str
) -> None:
    host = "https://abc123.execute-api.eu-west-1.amazonaws.com"

    assert described(path)["servers"] == [{"url": host + base}]


def description_of(**access: Any) -> Any:
    return json.loads(describe(query.app, "https://api.example.com/prod", AccessSettings(**access)))


@pytest.mark.parametrize(
    ("auth", "scheme"),
    [
        (
            "iam",
            {"type": "apiKey", "name": "Authorization", "in": "header", "x-amazon-apigateway-authtype": "awsSigv4"},
        ),
        ("api_key", {"type": "apiKey", "name": "x-api-key", "in": "header"}),
        ("cognito", DISCOVERED),
        ("oidc", DISCOVERED),
    ],
)
def test_the_description_names_the_authentication(auth: str, scheme: dict[str, str]) -> None:
    description = description_of(api_auth=auth, oidc_issuer=ISSUER)

    assert description["security"] == [{auth: []}]
    assert description["components"]["securitySchemes"][auth].items() >= scheme.items()


def test_each_way_to_sign_in_has_a_scheme() -> None:
    description = description_of(api_auth="oidc,iam", oidc_issuer=ISSUER)

    assert description["security"] == [{"oidc": []}, {"iam": []}]
    assert description["components"]["securitySchemes"].keys() == {"oidc", "iam"}


def test_an_api_without_authentication_has_no_security_scheme() -> None:
    description = description_of(api_auth="none")

    assert "security" not in description
    assert "securitySchemes" not in description["components"]


def test_each_operation_names_its_right_and_public_ones_need_none() -> None:
    description = description_of(api_auth="iam")

    for name, route in ROUTES.items():
        if route.summary:
            operation = description["paths"][route.path][route.method.lower()]
            assert operation.get("x-ragstack-right") == route.right, name
            assert (operation.get("security") == []) is (route.right is None), name


def test_the_description_has_the_events_of_a_stream_with_their_data(described: Callable[..., Any]) -> None:
    description = described()

    stream = description["paths"]["/api/ask/stream"]["post"]
    schemas = description["components"]["schemas"]
    schema = stream["responses"]["200"]["content"]["text/event-stream"]["schema"]
    events = schemas[schema["contentSchema"]["$ref"].rpartition("/")[2]]["oneOf"]
    names = {each["properties"]["event"]["const"]: each["properties"]["data"]["$ref"] for each in events}
    assert (stream["operationId"], schema["type"]) == ("ask_stream", "string")
    assert names.keys() == EVENTS.keys()
    assert {reference.rpartition("/")[2] for reference in names.values()} <= schemas.keys()
    assert description["paths"]["/api/ask"]["post"]["operationId"] == "ask"


@pytest.mark.skipif(GENERATOR is None, reason="openapi-python-client is missing: run `make clients`")
def test_a_generated_client_works_unchanged(
    api: str, door: Door, aws: Aws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = urllib.request.Request(f"{api}{BASE_PATH}/openapi.json", headers=door.headers)
    with urllib.request.urlopen(request) as answer:
        description = json.load(answer)
    (tmp_path / "openapi.json").write_text(json.dumps(description))
    assert GENERATOR is not None
    package = f"client_with_{door.kind}"
    generated = subprocess.run(
        [GENERATOR, "generate", "--path", "openapi.json", "--output-path", package, "--meta", "none"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    monkeypatch.syspath_prepend(tmp_path)

    def operation(name: str) -> Any:
        return importlib.import_module(f"{package}.api.default.{name}")

    models: Any = importlib.import_module(f"{package}.models")
    scheme = description["components"]["securitySchemes"][door.kind]
    url = description["servers"][0]["url"]
    client = importlib.import_module(package).AuthenticatedClient(
        base_url=url, token=SECRET, **({"prefix": "", "auth_header_name": scheme["name"]} if "name" in scheme else {})
    )
    found = operation("retrieve").sync(client=client, body=models.RetrieveRequest(query="trains", top_k=1))
    refused = operation("retrieve").sync(client=client, body=models.RetrieveRequest(query=" "))
    upload = models.UploadRequest(content_type="text/markdown", size=5, key="a.md")
    permitted = operation("create_document").sync(client=client, body=upload)
    aws.put("a.md")
    listed = operation("list_documents").sync(client=client, key="a.md")
    job = operation("start_job").sync(client=client, body=models.JobRequest(kind=models.JobRequestKind.FULL))
    followed = operation("get_job").sync(job.id, client=client)
    missing = operation("get_document").sync("0" * 32, client=client)
    tools = operation("list_tools").sync(client=client)
    tool_input = models.ToolInput.from_dict({"input": {"collection_name": KNOWLEDGE_BASE, "texts": ["trains"]}})
    ran = operation("run_tool").sync("retriever", client=client, body=tool_input)

    assert "WARNING" not in generated.stdout + generated.stderr
    assert url == f"{api}{BASE_PATH}"
    assert [(result.source, result.content) for result in found.results] == [("s3://documents/a.md", "Book early.")]
    assert (refused.error.code, bool(refused.error.request_id)) == ("InvalidQuery", True)
    assert (permitted.key, permitted.upload.size) == ("a.md", 5)
    assert [document.key for document in listed.documents] == ["a.md"]
    assert (followed.id, followed.kind, followed.status) == (job.id, "full", "QUEUED")
    assert missing.error.code == "DocumentNotFound"
    assert [tool.name for tool in tools.tools] == ["retriever"]
    assert ran.output.to_dict()["count"] == 1
