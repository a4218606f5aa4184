"""What attackers try: each test is one attempt to see, change or claim more than the rules allow."""

import asyncio
import json
import logging
from base64 import b64decode
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from ragstack_common.access.callers import Caller, caller_from_claims
from ragstack_common.access.policy import AccessPolicy, Claims
from ragstack_common.answers.models.protocol import ModelEnd, ModelPiece, ModelRequest, ModelResponse, ModelText
from ragstack_common.core.clients import events_client
from ragstack_common.core.errors import GenerationTimeoutError
from ragstack_common.ingestion.sidecars import parse_sidecar
from ragstack_common.registry.table import document_id
from ragstack_common.search.engines.bedrock import BedrockEngine
from ragstack_common.search.wrappers.cached import CachedRetrievalBackend
from ragstack_common.services.ask import AskService
from ragstack_common.services.ask_models import AskRequest
from ragstack_common.settings.answers import AnswerSettings
from ragstack_common.settings.names import MANAGED, OTHER_STORE, SOURCE_URI_KEY
from tests.access.world import BUCKET, Document, World, claims_of, deployed, headers_of, stable, user
from tests.support.aws_service import AwsService, aws_service
from tests.support.knowledge_base import KNOWLEDGE_BASE, hits, search_of

POLICY = AccessPolicy(
    rights={"read": ["everyone"], "write": ["everyone"], "operate": ["group:operators"]},
    labels={
        "acme": {"allow": ["group:acme"]},
        "acme-board": {"allow": ["group:acme-board"]},
        "globex": {"allow": ["group:globex"]},
        "shared": {"allow": ["everyone"]},
    },
    prefixes={
        "acme/": {"default": "acme", "labels": ["acme-board"], "writers": ["group:acme"]},
        "globex/": {"default": "globex", "labels": ["shared"], "writers": ["group:globex"]},
        "both/": {"default": "globex", "labels": ["acme", "shared"]},
    },
)
ALICE, BOB, EVE = user("alice", "acme", "acme-board"), user("bob", "globex"), user("eve", "acme")
DOCUMENTS = (
    *(
        Document(f"acme/{n}.md", "acme", "Leave is five days", {"city": f"Paris{n}", "corpus": "Acme"})
        for n in range(4)
    ),
    *(Document(f"globex/{n}.md", "globex", "Leave is six days", {"city": f"Rome{n}"}) for n in range(4)),
    Document("acme/board.md", "acme-board", "Leave is over"),
)
UPLOAD = {"content_type": "text/markdown", "size": 5}
PATH = "/api/documents"
QUERY = {"query": "How many days is leave?", "top_k": 20}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with deployed(tmp_path, POLICY, DOCUMENTS) as made:
        yield made


def sources(answer: tuple[int, Any]) -> set[str]:
    assert answer[0] == 200, answer
    return {each["source"].removeprefix(f"s3://{BUCKET}/") for each in answer[1]["results"]}


def label_of(world: World, key: str) -> Any:
    body = world.s3.get_object(Bucket=BUCKET, Key=f"{key}.metadata.json")["Body"].read()
    return parse_sidecar(body).attributes.get("access")


class TestIdentity:
    """Only a verified token or signature says who somebody is."""

    @pytest.mark.parametrize(
        "headers",
        [
            {"x-amzn-request-context": json.dumps({"authorizer": {"claims": json.dumps(claims_of(BOB))}})},
            {"x-amzn-request-context": json.dumps({"identity": {"userArn": "arn:aws:iam::123456789012:user/root"}})},
            {"X-Forwarded-User": "bob", "X-Remote-User": "bob", "X-Amzn-Oidc-Data": json.dumps(claims_of(BOB))},
            {"Cookie": f"Authorization=Bearer {json.dumps(claims_of(BOB))}"},
            {"Proxy-Authorization": f"Bearer {json.dumps(claims_of(BOB))}", "X-API-Key": "id"},
            {"Authorization": f"Basic {json.dumps(claims_of(BOB))}"},
        ],
        ids="+".join,
    )
    @pytest.mark.parametrize("is_behind_gateway", [False, True])
    def test_headers_do_not_authenticate(self, world: World, headers: dict[str, str], is_behind_gateway: bool) -> None:
        # Behind API Gateway, the adapter adds its own header to one that a client wrote.
        adapter = [("x-amzn-request-context", json.dumps({"requestId": "r"}))] if is_behind_gateway else []
        status, body = send(world, [*headers.items(), *adapter], is_behind_gateway=is_behind_gateway)

        assert (status, body["error"]["code"]) == (401, "NotAuthenticated")

    def test_a_forged_context_does_not_replace_the_token(self, world: World) -> None:
        context = json.dumps({"authorizer": {"claims": json.dumps(claims_of(BOB))}})

        _, body = send(world, [*headers_of(EVE).items(), ("x-amzn-request-context", context)])

        assert "globex/" not in json.dumps(body)
        assert "acme/0.md" in json.dumps(body)

    def test_a_client_does_not_choose_the_id_in_the_log(self, world: World) -> None:
        context = ("x-amzn-request-context", json.dumps({"requestId": "forged"}))
        adapter = ("x-amzn-request-context", json.dumps({"requestId": "real"}))

        _, body = send(world, [context, adapter], is_behind_gateway=True)

        assert body["error"]["requestId"] != "forged"

    def test_a_client_does_not_name_the_resource(self, world: World) -> None:
        context = ("x-amzn-request-context", json.dumps({"domainName": "evil.example", "stage": "v1"}))

        metadata = request(world, "GET", "/.well-known/oauth-protected-resource", [context])

        assert metadata.json()["resource"] == "http://api/mcp"

    @pytest.mark.parametrize(
        ("domain", "resource"),
        [
            ("a1.execute-api.eu-west-1.amazonaws.com", "https://a1.execute-api.eu-west-1.amazonaws.com/prod/mcp"),
            ("api.example.com", "https://api.example.com/mcp"),
        ],
    )
    def test_the_resource_is_where_the_client_reached_it(self, world: World, domain: str, resource: str) -> None:
        adapter = ("x-amzn-request-context", json.dumps({"domainName": domain, "stage": "prod"}))

        metadata = request(world, "GET", "/.well-known/oauth-protected-resource", [adapter], is_behind_gateway=True)

        assert metadata.json()["resource"] == resource

    @pytest.mark.parametrize("place", ["access_token", "token", "authorization", "claims"])
    def test_tokens_in_query_and_body_do_not_authenticate(self, world: World, place: str) -> None:
        token = json.dumps(claims_of(BOB))

        in_query, _ = send(world, [], path=f"/api/ask?{place}={token}")
        in_body, _ = send(world, [], body={"question": "Leave?", place: token})
        status, body = world.call(EVE, "POST", "/api/retrieve", {**QUERY, "caller": claims_of(BOB)})

        assert (in_query, in_body) == (401, 401)
        assert (status, body["error"]["code"]) == (400, "InvalidRequest")

    def test_a_session_of_another_caller_is_ignored(self, world: World) -> None:
        call = {"name": "search", "arguments": {"query": "leave"}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        answers = []
        for caller in (BOB, EVE):
            headers = [*headers_of(caller).items(), ("mcp-session-id", "session")]
            answers.append(json.dumps(send(world, headers, path="/mcp", body=message)[1]))

        assert "globex/0.md" in answers[0]
        assert "globex/" not in answers[1]
        assert "acme/0.md" in answers[1]

    def test_a_tenant_that_is_named_like_two_is_neither(self) -> None:
        caller = caller_from_claims({"sub": "eve", "org": "evil, acme globex"}, Claims(tenant="org"))

        assert caller.principals == {"everyone", "user:eve", "tenant:evil, acme globex"}


def send(
    world: World,
    headers: list[tuple[str, str]],
    *,
    path: str = "/api/ask",
    body: Any = None,
    is_behind_gateway: bool = False,
) -> tuple[int, Any]:
    question = body or {"question": "How many days is leave?"}
    answer = request(world, "POST", path, headers, question, is_behind_gateway=is_behind_gateway)
    return answer.status_code, answer.json()


def request(
    world: World,
    method: str,
    path: str,
    headers: list[tuple[str, str]],
    body: Any = None,
    *,
    is_behind_gateway: bool = False,
) -> httpx.Response:
    async def send_it() -> httpx.Response:
        transport = httpx.ASGITransport(world.application(is_behind_gateway=is_behind_gateway))
        async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
            return await client.request(method, path, json=body, headers=headers)

    return asyncio.run(send_it())


class TestFilters:
    """No filter of a caller widens what they see."""

    @pytest.mark.parametrize(
        "wanted",
        [
            {"access": "globex"},
            {"access": {"$ne": "acme"}},
            {"access": {"$nin": ["acme"]}},
            {"access": {"$in": ["globex", "acme"]}},
            {"$or": [{"access": "globex"}, {"access": {"$ne": "x"}}]},
            {"$not": {"access": "acme"}},
            {"$nor": [{"access": "acme"}]},
            {"equals": {"key": "access", "value": "globex"}},
            {
                "orAll": [
                    {"equals": {"key": "access", "value": "globex"}},
                    {"notEquals": {"key": "access", "value": "x"}},
                ]
            },
            {"notIn": {"key": "access", "value": ["acme"]}},
            {"x-amz-bedrock-kb-source-uri": f"s3://{BUCKET}/globex/0.md"},
            {"city": "Rome0"},
        ],
        ids=json.dumps,
    )
    @pytest.mark.parametrize("mode", ["strict", "prefer"])
    def test_a_filter_does_not_widen_access(self, world: World, wanted: Any, mode: str) -> None:
        body = {**QUERY, "metadata_filter": wanted, "filter_mode": mode, "filter_trust": 1, "explain": True}

        status, answer = world.call(EVE, "POST", "/api/retrieve", body)

        assert status in (200, 400), answer
        assert "globex/" not in json.dumps(answer.get("results"))
        assert "board.md" not in json.dumps(answer)

    @pytest.mark.parametrize("member", ["corpus_filter", "version_filter"])
    @pytest.mark.parametrize("value", ["globex", "all' or 1=1", '{"$ne": "x"}', "\x00"])
    def test_other_restrictions_do_not_widen_access(self, world: World, member: str, value: str) -> None:
        status, answer = world.call(EVE, "POST", "/api/retrieve", {**QUERY, member: value})

        assert status == 200, answer
        assert "globex/" not in json.dumps(answer)

    @pytest.mark.parametrize("member", ["scope_filter", "filters", "labels", "caller", "principals"])
    def test_a_scope_of_the_callers_own_is_refused(self, world: World, member: str) -> None:
        for path, body in (("/api/retrieve", QUERY), ("/api/ask", {"question": "Leave?"})):
            request = {**body, member: {"access": "globex"}}
            answer = world.post(EVE, path, request) if path == "/api/ask" else world.call(EVE, "POST", path, request)
            assert answer[0] == 400, answer


class TestBedrockFilters:
    """At the limits of Bedrock's filters, the scope is in the request, or there is no request."""

    @pytest.fixture
    def bedrock(self) -> Iterator[AwsService]:
        with aws_service("bedrock-agent-runtime") as service:
            service.program("Retrieve", hits())
            yield service

    @pytest.mark.parametrize("clauses", range(1, 8))
    @pytest.mark.parametrize("word", ["$and", "$or"])
    @pytest.mark.parametrize("depth", [1, 2, 3])
    @pytest.mark.parametrize("store", [OTHER_STORE, MANAGED])
    def test_the_scope_is_in_every_request(
        self, world: World, bedrock: AwsService, clauses: int, word: str, depth: int, store: str
    ) -> None:
        engine = BedrockEngine(KNOWLEDGE_BASE, client=bedrock.client(), vector_store=store)
        world.engine.backend = engine
        other = {"$and": "$or", "$or": "$and"}[word]
        uri = {SOURCE_URI_KEY: {"$nin": ["s3://documents/a.pdf"]}}
        wanted: Any = {word: [uri, *({f"k{number}": {"$ne": number}} for number in range(1, clauses))]}
        for level in range(1, depth):
            inner = wanted
            wanted = {(other if level % 2 else word): [inner, {f"level{level}": "x"}]}

        status, answer = world.call(EVE, "POST", "/api/retrieve", {**QUERY, "metadata_filter": wanted})

        asked = [search_of(each).get("filter", {}) for each in bedrock.asked("Retrieve")]
        assert status in (200, 400, 502)
        assert status != 200 or asked
        assert status != 400 or answer["error"]["code"] == "InvalidFilter"
        assert [each for each in asked if not is_within_scope(each)] == []
        assert bedrock.refusals == []


def is_within_scope(condition: dict[str, Any]) -> bool:
    """Whether every document that matches has one of Eve's labels."""
    ((word, value),) = condition.items()
    if word == "andAll":
        return any(map(is_within_scope, value))
    if word == "orAll":
        return all(map(is_within_scope, value))
    return bool(word == "in" and value == {"key": "access", "value": ["acme", "shared"]})


class TestCaches:
    def test_a_cached_answer_is_for_those_who_see_the_same(self, world: World) -> None:
        world.engine.backend = CachedRetrievalBackend(world.index)
        world.searches()

        first = sources(world.call(BOB, "POST", "/api/retrieve", QUERY))
        second = sources(world.call(EVE, "POST", "/api/retrieve", QUERY))
        third = sources(world.call(ALICE, "POST", "/api/retrieve", QUERY))

        assert {name.split("/")[0] for name in first} == {"globex"}
        assert {name.split("/")[0] for name in second} == {"acme"}
        assert third == second | {"acme/board.md"}

    @pytest.mark.parametrize(
        ("path", "query"), [(PATH, {"limit": "1"}), ("/api/facets", {"limit": "1", "key": "city"})]
    )
    def test_a_token_of_another_callers_page_shows_nothing_of_theirs(
        self, world: World, path: str, query: dict[str, str]
    ) -> None:
        for theirs, mine, secret in ((BOB, EVE, "globex"), (EVE, BOB, "acme"), (ALICE, EVE, "board")):
            token = world.call(theirs, "GET", path, **query)[1]["next_token"]

            status, answer = world.call(mine, "GET", path, **query, next_token=token)

            shown = json.dumps(answer.get("documents") if path == PATH else answer.get("facets"))
            assert status == 200
            assert secret not in shown
            assert ("Rome" if mine is EVE else "Paris") not in shown

    def test_a_token_shows_no_value_that_is_no_longer_there(self, world: World) -> None:
        """The count of a value that a document had before it was relabelled stays in the table, as zero."""
        world.relabel("acme/1.md", "acme-board")

        token = world.call(EVE, "GET", "/api/facets", limit="1", key="city")[1]["next_token"]

        assert b"Paris1" not in b64decode(token, b"-_")


class TestKeys:
    @pytest.mark.parametrize(
        "key",
        [
            *("../globex/a.md", "/globex/a.md", "acme/../../globex/a.md", "./globex/a.md", "globex\u2215a.md"),
            *("Globex/a.md", "gl\u043ebex/a.md", "\uff47lobex/a.md", "%67lobex/a.md", "globex%2fa.md", " globex/a.md"),
            *("globex/a.md", "globex//a.md", "other.md", "acme.md"),
        ],
    )
    def test_only_the_literal_prefix_is_the_tenants(self, world: World, key: str) -> None:
        status, answer = world.call(EVE, "POST", PATH, {**UPLOAD, "key": key})

        assert status in (400, 403), answer
        assert "globex" not in str(answer) or "globex" in key
        assert world.s3.list_objects_v2(Bucket=BUCKET, Prefix="globex/")["KeyCount"] == 8

    @pytest.mark.parametrize(
        "key", ["acme/../globex/a.md", "acme/%2e%2e/globex/a.md", "acme//globex/a.md", "acme/a .md"]
    )
    def test_a_key_of_the_tenant_stays_literal(self, world: World, key: str) -> None:
        """S3 keeps keys as they are: these are below acme/, whatever they look like."""
        status, answer = world.call(EVE, "POST", PATH, {**UPLOAD, "key": key})

        assert (status, answer["key"], answer["upload"]["fields"]["key"]) == (201, key, key)
        assert label_of(world, key) == "acme"

    @pytest.mark.parametrize(
        "key", ["acme/0.md.metadata.json", "acme/${filename}", "acme/a\n.md", "acme/a\x00.md", "acme/", "acme/a.exe"]
    )
    def test_other_names_are_refused(self, world: World, key: str) -> None:
        assert world.call(EVE, "POST", PATH, {**UPLOAD, "key": key})[0] == 400


class TestLabels:
    def test_empty_attributes_keep_the_label(self, world: World) -> None:
        assert world.call(ALICE, "POST", PATH, {**UPLOAD, "key": "acme/board.md", "attributes": {}})[0] == 201
        assert label_of(world, "acme/board.md") == "acme-board"

    @pytest.mark.parametrize(
        "label", ["acme-board", "globex", "shared", "nothing", "", None, ["acme"], {"$ne": 1}, True]
    )
    def test_a_caller_cannot_give_a_label_they_do_not_hold(self, world: World, label: Any) -> None:
        body = {**UPLOAD, "key": "acme/0.md", "attributes": {"access": label}}

        status, answer = world.call(EVE, "POST", PATH, body)

        assert status == 400, answer
        assert label_of(world, "acme/0.md") == "acme"

    @pytest.mark.parametrize("label", ["acme-board", "globex", "shared", "nothing", "", None, ["acme"]])
    def test_no_change_of_attributes_gives_another_label(self, world: World, label: Any) -> None:
        path = f"{PATH}/{document_id(f's3://{BUCKET}/acme/0.md')}"

        assert world.call(EVE, "PATCH", path, {"attributes": {"access": label}})[0] == 400
        assert world.call(EVE, "PATCH", path, {"attributes": None})[0] == 202
        assert world.call(EVE, "PATCH", path, {"attributes": {"year": 2026}, "merge": True})[0] == 202
        merged = world.call(EVE, "PATCH", path, {"attributes": {"access": label}, "merge": True})
        assert merged[0] == (202 if label is None else 400)  # null takes nothing away that the access file requires
        assert label_of(world, "acme/0.md") == "acme"

    @pytest.mark.parametrize("key", ["acme/board.md", "globex/0.md"])
    def test_attributes_of_a_hidden_document_are_not_changed(self, world: World, key: str) -> None:
        path = f"{PATH}/{document_id(f's3://{BUCKET}/{key}')}"
        before = label_of(world, key)

        assert world.call(EVE, "PATCH", path, {"attributes": {"access": "acme"}})[0] == 404
        assert label_of(world, key) == before

    @pytest.mark.parametrize("attributes", [None, {}, {"access": "acme"}])
    def test_a_hidden_document_is_not_overwritten(self, world: World, attributes: Any) -> None:
        body = {**UPLOAD, "key": "acme/board.md", "attributes": attributes}

        status, answer = world.call(EVE, "POST", PATH, body)

        assert (status, answer["error"]["message"]) == (403, "user:eve lacks the right write for acme/board.md")
        assert label_of(world, "acme/board.md") == "acme-board"

    def test_a_sidecar_in_the_bucket_labels_within_its_prefix_only(self, world: World) -> None:
        """Somebody who writes to the bucket itself names a label that the prefix does not permit."""
        sidecar = json.dumps({"metadataAttributes": {"access": "shared"}}).encode()
        world.s3.put_object(Bucket=BUCKET, Key="acme/board.md.metadata.json", Body=sidecar)

        assert POLICY.label_of("acme/board.md", "shared") == "acme"
        assert world.call(EVE, "GET", PATH, key="acme/board.md")[1]["documents"] == []

    @pytest.mark.parametrize("attributes", [None, {}, {"access": "globex"}])
    def test_a_planted_sidecar_labels_no_upload_of_others(self, world: World, attributes: Any) -> None:
        """Eve asks to upload a name that Bob will use, and uploads nothing. Her label must not become that of his."""
        assert world.call(EVE, "POST", PATH, {**UPLOAD, "key": "both/a.md", "attributes": {"access": "acme"}})[0] == 201

        status, _ = world.call(BOB, "POST", PATH, {**UPLOAD, "key": "both/a.md", "attributes": attributes})

        assert status == 403

    def test_a_planted_label_that_both_see_is_not_inherited(self, world: World) -> None:
        shared = {**UPLOAD, "key": "both/a.md", "attributes": {"access": "shared", "corpus": "Eve"}}
        assert world.call(EVE, "POST", PATH, shared)[0] == 201

        assert world.call(BOB, "POST", PATH, {**UPLOAD, "key": "both/a.md"})[0] == 201

        assert label_of(world, "both/a.md") == "globex"

    def test_a_permitted_upload_keeps_its_label_until_it_happens(self, world: World) -> None:
        assert world.call(BOB, "POST", PATH, {**UPLOAD, "key": "both/a.md"})[0] == 201

        assert world.call(EVE, "POST", PATH, {**UPLOAD, "key": "both/a.md", "attributes": {"access": "acme"}})[0] == 403
        assert label_of(world, "both/a.md") == "globex"

    def test_two_uploads_at_once_do_not_mix(self, world: World) -> None:
        """Eve's request arrives after Bob's was checked and before his sidecar is written."""
        started: list[bool] = []

        def interrupt(**_: Any) -> None:
            if not started:
                started.append(True)
                body = {**UPLOAD, "key": "both/a.md", "attributes": {"access": "acme"}}
                assert world.call(EVE, "POST", PATH, body)[0] == 201

        world.s3.meta.events.register("before-call.s3.PutObject", interrupt)
        status, answer = world.call(BOB, "POST", PATH, {**UPLOAD, "key": "both/a.md"})
        world.s3.meta.events.unregister("before-call.s3.PutObject", interrupt)

        assert (status, answer["error"]["code"]) == (502, "ServiceUnavailable")
        assert "at the same time" in answer["error"]["message"]


@dataclass
class Slow:
    """A model that writes for ever."""

    name: str = "slow"
    model: str = "slow"
    quotes: bool = False

    def generate(self, request: ModelRequest) -> ModelResponse:
        raise NotImplementedError(request)

    async def stream(self, _: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        for _number in range(10_000):
            await asyncio.sleep(0.01)
            yield ModelText("Leave is five days [1]. ")
        yield ModelEnd("end_turn", 1, 1, self.model)


class TestTraces:
    """What takes time is the same for a document of others and for one that does not exist."""

    HIDDEN, UNKNOWN = f"s3://{BUCKET}/globex/0.md", f"s3://{BUCKET}/globex/9.md"
    REQUESTS: Mapping[str, Callable[[str], tuple[str, str, Any, dict[str, str]]]] = {
        "get": lambda uri: ("GET", f"/api/documents/{document_id(uri)}", None, {}),
        "find": lambda uri: ("GET", "/api/documents", None, {"uri": uri}),
        "delete": lambda uri: ("DELETE", f"/api/documents/{document_id(uri)}", None, {}),
        "change": lambda uri: ("PATCH", f"/api/documents/{document_id(uri)}", {"attributes": {"city": "Rome"}}, {}),
        "view": lambda uri: ("POST", "/api/view", {"uri": uri}, {}),
        "picture": lambda uri: ("GET", "/api/view", None, {"uri": uri, "passage": "leave", "marks": "0-5"}),
        "explain": lambda uri: ("POST", "/api/explain", {"query": "leave", "document": uri}, {}),
    }

    @pytest.mark.parametrize("name", REQUESTS)
    def test_calls_and_audit_events_do_not_depend_on_existence(self, tmp_path: Path, name: str) -> None:
        events_client.cache_clear()
        with deployed(tmp_path, POLICY, DOCUMENTS, AUDIT_BUS="default") as world:
            traces, calls = [], list[str]()
            for client in (world.dynamodb, world.s3, events_client()):
                client.meta.events.register("before-call", lambda model, **_: calls.append(model.name))
            for uri in (self.HIDDEN, self.UNKNOWN) * 2:  # the first requests make clients
                calls.clear()
                world.audits.clear()
                method, path, body, query = self.REQUESTS[name](uri)
                status, answer = world.call(EVE, method, path, body, **query)
                shown = json.dumps(stable(answer)).replace(uri, "URI").replace(document_id(uri), "ID")
                events = [(each["kind"], each["right"], each["caller"]) for each in world.audits]
                traces.append((status, shown, [*calls], events))
            _, seen = world.call(EVE, "POST", "/api/view", {"uri": f"s3://{BUCKET}/acme/0.md"})
        events_client.cache_clear()

        assert traces[2] == traces[3]
        assert traces[3][0] == (200 if name in ("find", "explain") else 404)
        assert seen["text"]


class TestTime:
    @pytest.mark.parametrize("left", [0.3, 0.0, -5.0])
    def test_an_answer_ends_with_the_token(self, world: World, left: float) -> None:
        service = AskService(AnswerSettings(), world.searches(), Slow(), now=lambda: 1000.0)
        caller = replace(EVE, expires_at=1000.0 + left)

        with pytest.raises(GenerationTimeoutError):
            asyncio.run(service.ask(AskRequest(question="How many days is leave?"), caller))


class TestNames:
    NAMES = (
        *("eve\n2026-01-01 ERROR forged", "eve\x00", "e" * 10_000, "eve\r\nSet-Cookie: a=b", '{"audit": 1}'),
        "\u202eeve",
    )

    @pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
    def test_a_name_is_one_value_wherever_it_is_written(
        self, world: World, name: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
    ) -> None:
        caller = Caller(f"user:{name}", frozenset({"everyone", f"user:{name}"}))
        world.audits.clear()

        with caplog.at_level(logging.INFO):
            status, answer = world.call(caller, "POST", "/api/ingestion-jobs")
        _, me = world.call(caller, "GET", "/api/me")

        assert status == 403
        assert "\n" not in answer["error"]["message"]
        assert me["principals"] == ["everyone", f"user:{name}"]
        assert [each["caller"] for each in world.audits] == [f"user:{name}"]
        for line in capsys.readouterr().out.splitlines():
            json.loads(line)

    @pytest.mark.parametrize("label", ["a\nb", "\x00", "a" * 101, "", "a b", "gl\u043ebex", "../x"])
    def test_operators_cannot_make_invalid_labels(self, world: World, label: str) -> None:
        body = {"label": label, "principal": "user:eve", "effect": "allow"}

        assert world.call(user("olga", "operators"), "POST", "/api/access", body)[0] == 400

    def test_audit_events_have_no_text_of_questions(self, world: World) -> None:
        world.audits.clear()
        world.logs.clear()

        world.call(EVE, "POST", "/api/retrieve", {"query": "Zebra", "corpus_filter": "all"})
        world.post(EVE, "/api/ask", {"question": "Zebra?"})
        world.call(EVE, "POST", "/api/failures/replay", {"ids": ["Zebra"]})
        world.call(EVE, "GET", PATH, key="globex/0.md")

        assert len(world.audits) == 2
        assert "Zebra" not in json.dumps([world.audits, world.logs])
