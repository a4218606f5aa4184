"""People who sign in to the whole stack: what each of them receives, may do, and is refused."""

import json
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import urllib3

from ragstack_common.registry.table import document_id
from ragstack_local.signin.provider import ClientRegistration, Provider
from ragstack_local.stack.issuer import CLIENT
from tests.e2e.support import ROOT, LocalStack
from tests.ragstack_local.support import ragstack

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("local stack")]

QUESTION = "How many days of annual leave do I have?"
PEOPLE, ENGINEERING, PRODUCT = (f"samples/documents/{name}/" for name in ("people", "engineering", "product"))
LEAVE = f"{PEOPLE}leave-and-holidays-2026.md"

Answer = tuple[int, Any, Mapping[str, str]]


@cache
def token_of(issuer: str, user: str) -> str:
    return Provider.discover(issuer).silently(ClientRegistration(CLIENT, (CLIENT,)), user).bearer


class People:
    """Calls the API of people."""

    def __init__(self, stack: LocalStack) -> None:
        self.connection = stack.connection
        self.url = str(self.connection.people_url)

    def call(
        self, user: str | None, method: str, path: str, body: Any = None, *, url: str | None = None, **headers: str
    ) -> Answer:
        token = {"Authorization": f"Bearer {token_of(str(self.connection.oidc_issuer), user)}"} if user else {}
        answer = urllib3.request(
            method,
            f"{url or self.url}{path}",
            body=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", **token, **headers},
            timeout=120,
            retries=False,
        )
        content = answer.data.decode()
        is_json = answer.headers.get("Content-Type", "").startswith("application/json")
        return answer.status, json.loads(content) if is_json else content, answer.headers

    def got(self, user: str, method: str, path: str, body: Any = None, **more: Any) -> Any:
        status, answer, _ = self.call(user, method, path, body, **more)
        assert status == 200, answer
        return answer

    def retrieved(self, user: str, query: str = QUESTION) -> set[str]:
        results = self.got(user, "POST", "/api/retrieve", {"query": query, "top_k": 50})["results"]
        return {_key(result["source"]) for result in results}

    def asked(self, user: str) -> set[str]:
        return _sources(self.got(user, "POST", "/api/ask", {"question": QUESTION}))

    def streamed(self, user: str) -> set[str]:
        url = self.connection.answers_url
        events = self.got(user, "POST", "/api/ask/stream", {"question": QUESTION}, url=url)
        lines = [line.removeprefix("data: ") for line in events.splitlines() if line.startswith("data: ")]
        return set().union(*(_sources(event) for line in lines if isinstance(event := json.loads(line), dict)))

    def listed(self, user: str) -> set[str]:
        found = self.got(user, "GET", "/api/documents")["documents"]
        return {document["key"] for document in found}

    def told_over_mcp(self, user: str) -> set[str]:
        params = {"name": "search", "arguments": {"query": QUESTION, "top_k": 50}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        accept = {"Accept": "application/json, text/event-stream"}
        answer = self.got(user, "POST", "/mcp", body, url=self.connection.answers_url, **accept)
        return {_key(result["source"]) for result in answer["result"]["structuredContent"]["results"]}


def _key(uri: str) -> str:
    return uri.split("/", 3)[3]


def _sources(answer: Any) -> set[str]:
    return {_key(source["source"]) for source in answer.get("sources", [])}


@pytest.fixture
def people(stack: LocalStack, handbook: Path) -> People:
    return People(stack)


@pytest.mark.parametrize(
    "route", [People.retrieved, People.asked, People.streamed, People.listed, People.told_over_mcp]
)
def test_two_people_receive_different_documents(people: People, route: Callable[[People, str], set[str]]) -> None:
    alice, bob, olga = (route(people, user) for user in ("alice", "bob", "olga"))

    assert alice
    assert all(key.startswith(PEOPLE) for key in alice)
    assert all(key.startswith((ENGINEERING, PRODUCT)) for key in bob)
    assert LEAVE in olga


def test_counts_cover_only_visible_documents(people: People) -> None:
    counts = {user: people.got(user, "GET", "/api/facets")["documents"] for user in ("alice", "bob", "olga")}

    assert counts["alice"] == len(people.listed("alice"))
    assert counts["bob"] == len(people.listed("bob"))
    assert counts["olga"] > counts["alice"] + counts["bob"]


def test_a_document_of_others_does_not_exist(people: People, stack: LocalStack) -> None:
    path = f"/api/documents/{document_id(stack.put(f'{PEOPLE}temporary.md', 'The tapir of accounting naps at noon.'))}"
    stack.found("Where does the tapir nap?", "naps at noon")

    by_bob = [people.call("bob", method, path)[0] for method in ("GET", "DELETE")]
    by_alice = people.call("alice", "GET", path)[0]
    by_olga = people.call("olga", "DELETE", path)[0]

    assert by_bob == [404, 404]
    assert (by_alice, by_olga) == (200, 202)


def test_a_revoked_label_disappears_with_the_next_request(people: People) -> None:
    def change(effect: str | None) -> None:
        people.got("olga", "POST", "/api/access", {"label": "people", "principal": "user:alice", "effect": effect})

    before = people.retrieved("alice")
    try:
        change("deny")
        after = people.retrieved("alice"), people.listed("alice"), people.asked("alice")
    finally:
        change(None)

    assert LEAVE in before
    assert after == (set(), set(), set())
    assert people.retrieved("alice") == before


def test_operators_alone_read_and_change_the_rules(people: People) -> None:
    statuses = {user: people.call(user, "GET", "/api/access")[0] for user in ("alice", "bob", "olga")}
    _, refused, _ = people.call(
        "bob", "POST", "/api/access", {"label": "people", "principal": "user:bob", "effect": "allow"}
    )

    assert statuses == {"alice": 403, "bob": 403, "olga": 200}
    assert refused["error"]["message"] == "user:bob lacks the right operate"


def test_a_conversation_outlives_its_tab_for_its_owner_and_those_who_may_see_it(people: People) -> None:
    conversation = str(uuid4())
    path, question = f"/api/conversations/{conversation}", {"question": QUESTION, "conversation": conversation}
    for _ in range(2):
        assert people.got("alice", "POST", "/api/ask", question)["conversation"]["saved"]

    found = people.got("alice", "GET", path)
    shared = people.got("alice", "PUT", f"{path}/share")["link"]
    of_bob = people.got("bob", "GET", f"/api/shared/{shared}")
    not_bobs = people.call("bob", "GET", path)[0]
    renamed = people.got("alice", "PATCH", path, {"title": "Leave"})
    listed = people.got("alice", "GET", "/api/conversations?query=leave%20annual")
    deleted = people.got("alice", "DELETE", "/api/conversations")
    gone = [people.call("alice", "GET", path)[0], people.call("bob", "GET", f"/api/shared/{shared}")[0]]
    late = people.got("alice", "POST", "/api/ask", question)["conversation"]

    assert [LEAVE in _sources(turn["response"]) for turn in found["turns"]] == [True, True]
    assert ([turn["withheld"] for turn in of_bob["turns"]], of_bob["withheld_turns"]) == (["rights", "rights"], 2)
    assert (not_bobs, renamed["title"], gone) == (404, "Leave", [404, 404])
    assert [each["id"] for each in listed["conversations"]] == [conversation]
    assert deleted == {"deleted": 1}
    assert late["saved"] is False


@pytest.mark.parametrize("path", ["/api/corpora", "/api/documents", "/mcp"])
def test_requests_without_a_token_are_refused(people: People, path: str) -> None:
    for headers in ({}, {"Authorization": "Bearer a.b.c"}, {"X-Ragstack-User": "alice"}):
        status, answer, found = people.call(None, "GET", path, **headers)

        assert status == 401, answer
        assert found["WWW-Authenticate"].startswith("Bearer ")


def test_the_server_of_answers_verifies_tokens_itself(people: People) -> None:
    question = {"question": QUESTION}
    url = people.connection.answers_url

    forged = people.call(None, "POST", "/api/ask", question, url=url, Authorization="Bearer a.b.c")
    local = people.call(None, "POST", "/api/ask", question, url=url)

    assert forged[0] == 401
    assert "resource_metadata=" in forged[2]["WWW-Authenticate"]
    assert LEAVE in _sources(local[1])


@pytest.fixture
def home(tmp_path: Path, people: People) -> Callable[..., Any]:
    """Run commands with logins of their own, which know the API of people by its URL."""

    def run(*arguments: str | Path) -> Any:
        return ragstack(*arguments, "--api-url", people.url, data=tmp_path)

    return run


def test_a_login_is_used_renewed_and_forgotten(home: Callable[..., Any], tmp_path: Path) -> None:
    signed_in = home("login", "--user", "alice", "--client-id", CLIENT)
    (file,) = (tmp_path / "logins").glob("*.json")
    login = json.loads(file.read_text())
    file.write_text(json.dumps({**login, "expires_at": time.time() - 1, "bearer": "expired"}))
    answered = home("ask", QUESTION)
    refused = home("failures")
    forgotten = home("logout")
    stranger = home("whoami")

    assert "user:alice" in signed_in.stdout, signed_in.stderr
    assert "Sees     handbook, people" in signed_in.stdout
    assert "leave-and-holidays-2026.md" in answered.stdout, answered.stderr
    assert not file.exists()
    assert "user:alice lacks the right operate" in refused.stderr
    assert "Signed out" in forgotten.stdout
    assert (stranger.returncode, "run `ragstack login`" in stranger.stderr) == (3, True)


def test_the_expectations_of_the_sample_are_met(stack: LocalStack, handbook: Path) -> None:
    done = stack.run("access", "test", ROOT / "samples" / "access_tests.json")

    assert done.returncode == 0, done.stdout + done.stderr


def test_operators_see_gaps_people_and_settings(people: People) -> None:
    question = f"How long is the warranty of {uuid4().hex}?"
    status, reported, _ = people.call("bob", "POST", "/api/gaps", {"question": question, "comment": "Missing"})
    assert status == 201, reported

    gap = next(each for each in people.got("olga", "GET", "/api/gaps")["groups"] if each["id"] == reported["id"])
    changed = people.got("olga", "PATCH", f"/api/gaps/{gap['id']}", {"state": "answered"})
    seen = {each["principal"]: each for each in people.got("olga", "GET", "/api/people")["people"]}
    settings = {each["name"]: each for each in people.got("olga", "GET", "/api/settings")["settings"]}

    assert (gap["question"], gap["state"], changed["state"]) == (question, "open", "answered")
    assert reported["id"] not in json.dumps(people.got("alice", "GET", "/api/gaps")), "Bob sees what Alice does not"
    assert "group:engineering" in seen["user:bob"]["groups"]
    assert (settings["target"]["value"], settings["target"]["origin"]) == ("local", "context")
    assert settings["SNAPSHOT_DELAY_SECONDS"]["origin"] == "target"
    for path in ("/api/people", "/api/settings"):
        assert people.call("alice", "GET", path)[0] == 403
