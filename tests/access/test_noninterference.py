"""What a caller receives is what they would receive if the documents that they may not see had never existed."""

import json
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan

from ragstack_common.access.callers import Caller
from ragstack_common.access.policy import AccessPolicy
from ragstack_common.access.rules import AccessRules, Effect, RuleOverride
from ragstack_common.registry.records import Status
from ragstack_common.registry.table import document_id
from tests.access.world import Document, World, deployed, stable, user
from tests.support.knowledge_base import KNOWLEDGE_BASE
from tests.support.soak import SOAK
from tests.support.spans import Spans, attributes, recorded

LABELS = ["a", "b", "c"]
PRINCIPALS = ["everyone", "user:u", "group:g", "group:h"]
OPERATOR = user("olga", "operators")
WORDS = ["Leave", "travel", "Berlin", "Red Book", "budget", "is", "five", "days"]
SEARCHES = ("retrieve ", "explain ", "ask ", "stream ", "run tool", "mcp retriever", "mcp search", "mcp ask")
QUESTIONS = ["How many days of leave for Berlin?", "budget of the Red Book", "travel", "Leave in the people corpus"]

_principals = st.lists(st.sampled_from(PRINCIPALS), unique=True, max_size=3)
_prefix = st.builds(
    lambda default, labels, writers: {"default": default, "labels": labels, "writers": writers},
    st.sampled_from([None, *LABELS]),
    st.lists(st.sampled_from(LABELS), unique=True),
    st.sampled_from([["everyone"], ["group:g"], []]),
)
policies = st.builds(
    lambda labels, prefixes, everything: AccessPolicy(
        rights={"read": ["everyone"], "write": ["user:u"], "operate": ["group:operators"]},
        labels=labels,
        prefixes=prefixes,
        sees_everything=everything,
    ),
    st.fixed_dictionaries(
        {name: st.fixed_dictionaries({"allow": _principals, "deny": _principals}) for name in LABELS}
    ),
    st.fixed_dictionaries({"": _prefix, "hr/": _prefix}),
    st.sampled_from([[], [], ["group:h"]]),
)
changes = st.lists(
    st.tuples(st.sampled_from(LABELS), st.sampled_from(PRINCIPALS), st.sampled_from([*Effect, None])), max_size=3
)
callers = st.lists(st.sampled_from(["g", "h"]), unique=True).map(lambda groups: user("u", *groups))
values = st.fixed_dictionaries(
    {},
    optional={
        "corpus": st.sampled_from(["people", "law", "Red Book"]),
        "version": st.sampled_from(["2024", "2025", "2026"]),
        "city": st.sampled_from(["Berlin", "Red Book", "New York"]),
        "tags": st.lists(st.sampled_from(["x", "y"]), min_size=1, unique=True),
        "level": st.integers(1, 3),
    },
)
texts = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join), min_size=1, max_size=3).map(
    ". ".join
)
statuses = st.sampled_from([*[Status.INDEXED] * 5, Status.FAILED, Status.WAITING, Status.DELETED])


@st.composite
def documents(draw: st.DrawFn, policy: AccessPolicy) -> list[Document]:
    """Draw documents whose labels are those that ingestion gives them, some of them changed since they were indexed."""
    found = []
    for number in range(draw(st.integers(1, 12 if SOAK else 4))):
        key = draw(st.sampled_from(["", "hr/", "hr/plan-", "eng/"])) + f"d-{number}.md"
        status = draw(statuses)
        found.append(
            Document(
                key,
                policy.label_of(key, draw(st.sampled_from([None, *LABELS]))),
                f"{draw(texts)}. Token{number} is secret",
                draw(values),
                status,
                indexed_label=draw(st.sampled_from([None, None, None, *LABELS])),
                is_indexed=True if status is Status.DELETED and draw(st.booleans()) else None,
            )
        )
    return found


def everything(world: World, caller: Caller, known: Sequence[Document], question: str) -> Iterator[tuple[str, Any]]:
    """Send every request that a caller can send, and yield what they receive."""
    yield from searches(world, caller, question)
    yield from explanations(world, caller, known, question)
    yield from judgments(world, caller, known, question)
    yield from listings(world, caller, known)
    yield from changing(world, caller, known)


def searches(world: World, caller: Caller, question: str) -> Iterator[tuple[str, Any]]:
    for options in (
        {},
        {"explain": True, "passages": 3, "deduplicate_by": "chunk"},
        {"explain": True, "passages": 3, "top_k": 2},
        {"metadata_filter": {"city": "Berlin"}, "explain": True},
        {"metadata_filter": {"city": "Berlin"}, "filter_mode": "strict"},
        {"metadata_filter": {"access": {"$ne": "zzz"}}, "filter_trust": 1},
        {"metadata_filter": {"$or": [{"access": {"$in": LABELS}}, {"level": {"$gt": 0}}]}},
        {"infer_filter": True, "top_k": 1},
        {"corpus_filter": "all", "rerank": True, "explain": True},
        {"corpus_filter": "people"},
        {"version_filter": "2025"},
        {"min_relevance": 0.5, "rerank": "lexical"},
    ):
        yield (
            f"retrieve {question} {options}",
            world.call(caller, "POST", "/api/retrieve", {"query": question, **options}),
        )
    for more in ({}, {"corpus_filter": "all"}, {"metadata_filter": {"city": "Berlin"}}):
        body = {"question": question, **more}
        yield f"ask {more}", world.post(caller, "/api/ask", body)
        yield f"stream {more}", world.post(caller, "/api/ask/stream", body)
    tool = {"collection_name": KNOWLEDGE_BASE, "texts": [question, "travel"], "top_k": 3}
    yield "run tool", world.call(caller, "POST", "/tools/retriever", {"input": tool})
    yield "mcp retriever", world.tool(caller, "retriever", **tool)
    yield "mcp search", world.tool(caller, "search", query=question)
    yield "mcp ask", world.tool(caller, "ask", question=question)
    for name in ("list_corpora", "list_versions"):
        yield f"mcp {name}", world.tool(caller, name)


def explanations(world: World, caller: Caller, known: Sequence[Document], question: str) -> Iterator[tuple[str, Any]]:
    for each in known:
        for options in ({"top_k": 1}, {"corpus_filter": "people"}, {"min_relevance": 1, "deduplicate_by": "chunk"}):
            body = {"query": question, "document": each.uri, **options}
            status, answer = world.call(caller, "POST", "/api/explain", body)
            assert answer.pop("document") == each.uri
            yield f"explain {each.key} {options}", (status, answer)


def judgments(world: World, caller: Caller, known: Sequence[Document], question: str) -> Iterator[tuple[str, Any]]:
    for each in known:
        body = {"query_id": "q", "query": question, "document": each.uri, "grade": 2}
        status, written = world.call(caller, "PUT", "/api/judgments", body)
        assert written.pop("at")
        yield f"judge {each.key}", (status, written)
    status, listed = world.call(caller, "GET", "/api/judgments")
    yield "judgments", (status, [{**each, "at": ""} for each in listed["judgments"]])
    yield "judgments of all", world.call(caller, "GET", "/api/judgments", all="true")


def listings(world: World, caller: Caller, known: Sequence[Document]) -> Iterator[tuple[str, Any]]:
    for path in ("/api/corpora", "/api/versions", "/tools", "/api/me", "/health"):
        yield path, world.call(caller, "GET", path)
    for query in ({}, {"limit": "2"}, {"key": "city"}, {"key": "city", "prefix": "B"}, {"key": "access"}):
        yield from pages(world, caller, "/api/facets", query)
    for query in ({}, {"limit": "1"}, {"status": "FAILED"}, {"status": "DELETED"}, {"corpus": "people", "limit": "2"}):
        yield from pages(world, caller, "/api/documents", query)
    for query in ({"query": "d"}, {"query": "hr plan", "limit": "1"}, {"query": "Red Book"}, {"query": "2025"}):
        yield f"words {query}", world.call(caller, "GET", "/api/documents/find", **query)
    for each in known:
        yield f"words {each.key}", world.call(caller, "GET", "/api/documents/find", query=each.key)
        for query in ({"key": each.key}, {"uri": each.uri}):
            yield f"find {query}", world.call(caller, "GET", "/api/documents", **query)
        yield f"get {each.key}", world.call(caller, "GET", f"/api/documents/{document_id(each.uri)}")
        status, answer = world.call(caller, "GET", f"/api/documents/{document_id(each.uri)}/download")
        answer.pop("url", None)  # signed for this second
        yield f"download {each.key}", (status, answer)
        yield f"status {each.key}", world.tool(caller, "get_document_status", document=each.uri)
    for method, path in (
        *(("GET", "/api/ingestion-jobs"), ("POST", "/api/ingestion-jobs"), ("GET", "/api/ingestion-jobs/x")),
        *(("GET", "/api/failures"), ("POST", "/api/failures/replay"), ("GET", "/api/access")),
        *(("GET", "/api/settings"), ("GET", "/api/people"), ("GET", "/api/gaps"), ("PATCH", "/api/gaps/x")),
        *(("POST", "/api/access/explain"), ("GET", "/api/status"), ("POST", "/api/people/erase")),
    ):
        yield path, world.call(caller, method, path)


def changing(world: World, caller: Caller, known: Sequence[Document]) -> Iterator[tuple[str, Any]]:
    for each in known:
        path = f"/api/documents/{document_id(each.uri)}"
        for change in ({"city": "Rome"}, {"access": "a"}, None):
            yield f"change {each.key} {change}", world.call(caller, "PATCH", path, {"attributes": change})
    for each in known:
        yield f"delete {each.key}", world.call(caller, "DELETE", f"/api/documents/{document_id(each.uri)}")
    yield (
        "upload",
        world.call(
            caller,
            "POST",
            "/api/documents",
            {"key": "hr/new.md", "content_type": "text/markdown", "size": 5, "attributes": {"city": "Rome"}},
        ),
    )


def pages(world: World, caller: Caller, path: str, query: dict[str, str]) -> Iterator[tuple[str, Any]]:
    """Follow the tokens of a listing."""
    token: dict[str, str] = {}
    for number in range(100):
        answer = world.call(caller, "GET", path, **query, **token)
        yield f"{path} {query} page {number}", answer
        following = answer[1].get("next_token")
        if following is None:
            return
        token = {"next_token": following}
    pytest.fail("the pages never end")


def received(
    folder: Path,
    policy: AccessPolicy,
    known: Sequence[Document],
    there: Sequence[Document],
    made: Sequence[tuple[str, str, Effect | None]],
    caller: Caller,
    question: str,
    spans: Spans,
) -> tuple[dict[str, Any], list[str]]:
    """Return all answers, and what operators see of them in spans and log."""
    with deployed(folder, policy, there) as world:
        every = {"query": question, "corpus_filter": "all"}
        world.call(caller, "POST", "/api/retrieve", every)
        for label, principal, effect in made:
            body = {"label": label, "principal": principal, "effect": effect}
            assert world.call(OPERATOR, "POST", "/api/access", body)[0] == 200
        # It searches by the old rules while it reads the new ones, and then again.
        first = world.call(caller, "POST", "/api/retrieve", every)
        spans.clear()
        world.logs.clear()
        answers = {"retrieve first": stable(first)}
        answers |= {name: stable(answer) for name, answer in everything(world, caller, known, question)}
        ended = [span for found in spans.by_name().values() for span in found]
        return answers, [*sorted(world.logs), *sorted(f"{span.name} {stable_attributes(span)}" for span in ended)]


def stable_attributes(span: ReadableSpan) -> dict[str, Any]:
    """Return what a span shows, without what differs between two equal requests."""
    shown = {name: value for name, value in attributes(span).items() if not name.endswith("_ms")}
    written = {name: value for name, value in shown.items() if isinstance(value, str) and value.startswith("{")}
    return {**shown, **{name: json.dumps(stable(json.loads(value))) for name, value in written.items()}}


# To shrink an example takes minutes, and hardly helps: the answer that differs says enough.
@pytest.mark.timeout(2 * 3600)
@settings(
    max_examples=200 if SOAK else 3,
    suppress_health_check=[*HealthCheck],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(data=st.data(), policy=policies, made=changes, caller=callers)
def test_hidden_documents_change_nothing(
    data: st.DataObject,
    policy: AccessPolicy,
    made: list[tuple[str, str, Effect | None]],
    caller: Caller,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    known, question = data.draw(documents(policy)), data.draw(st.sampled_from(QUESTIONS))
    folder = tmp_path_factory.mktemp("access")
    effective = {(label, principal): effect for label, principal, effect in made}
    rules = AccessRules(
        policy, [RuleOverride(*place, effect, "", 0.0) for place, effect in effective.items() if effect]
    )
    visible = [each for each in known if rules.sees(caller, each.label)]

    with recorded() as spans:
        with_hidden, observed = received(folder, policy, known, known, made, caller, question, spans)
        without, expected = received(folder, policy, known, visible, made, caller, question, spans)

    explains_hidden = tuple(f"explain {each.key} " for each in known if each not in visible)
    is_stale = any(each.is_stale for each in known if each not in visible)
    assert with_hidden.keys() == without.keys()
    for name, answer in with_hidden.items():
        if not is_stale or not name.startswith(SEARCHES) or name.startswith(explains_hidden):
            assert json.dumps(answer) == json.dumps(without[name]), name
    # An index that follows later can affect the counts of candidates, and nothing that names a document.
    shown = json.dumps([answer for name, answer in with_hidden.items() if name.startswith(SEARCHES)])
    assert [each.key for each in known if each not in visible and (each.key in shown or token_of(each) in shown)] == []
    # Right after a change, a search with the earlier rules is discarded, and its span shows what it found.
    if not is_stale and not made:
        assert [*unified_diff(expected, observed, n=0, lineterm="")] == []


def token_of(document: Document) -> str:
    """Return the word that only one document has."""
    return f"Token{document.key.partition('d-')[2].removesuffix('.md')} "
