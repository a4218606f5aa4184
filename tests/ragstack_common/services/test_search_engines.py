"""The query function over an engine of the user's own: every member of a request, and what can be searched."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from lambdas.query import handler as query
from ragstack_common.core.errors import RagStackError
from ragstack_common.search import RetrievalBackend, register_backend
from ragstack_common.services import catalogue
from tests.contract.cases.third_party import InMemoryBackend
from tests.contract.documents import Document
from tests.ragstack_common.services.conftest import Call
from tests.support.events import REQUEST_ID

DOCUMENTS: list[dict[str, Any]] = [
    {"id": "us1", "text": "A tenant of a flat may leave with thirty days of notice.", "corpus": "legal_us"},
    {"id": "us2", "text": "A landlord must return the deposit of a flat.", "corpus": "legal_us", "version": "2"},
    {"id": "us3", "text": "A flat must be heated in winter by its landlord.", "corpus": "legal_us", "version": "10"},
    {"id": "uk1", "text": "Notice to a tenant of a flat is two months.", "corpus": "legal_uk", "version": "1"},
    {"id": "other", "text": "The notice board of the flat hangs in the hall.", "version": 3},
]
CORPORA = "legal_us,legal_uk,legislation_nz"


Search = Callable[..., Any]


class Counted(InMemoryBackend):
    searches = 0

    async def retrieve(self, *arguments: Any, **more: Any) -> Any:
        Counted.searches += 1
        return await super().retrieve(*arguments, **more)


def made(documents: list[dict[str, Any]]) -> RetrievalBackend:
    return Counted([document(**each) for each in documents])


def document(id: str, text: str, **metadata: Any) -> Document:  # noqa: A002 - as the engine's configuration has it
    return Document(id, f"{id}.md", text, metadata)


@pytest.fixture(autouse=True)
def function(ask: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    register_backend("in_memory", made)
    monkeypatch.delenv("KNOWLEDGE_BASE_ID")
    monkeypatch.setenv("RETRIEVAL_ENGINE", "in_memory")
    monkeypatch.setenv("RETRIEVAL_ENGINE_CONFIG", json.dumps({"documents": DOCUMENTS}))
    Counted.searches = 0


@pytest.fixture
def corpora(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULTI_CORPUS_METADATA", CORPORA)


@pytest.fixture
def search(ask: Call) -> Search:
    def send(**more: Any) -> Any:
        status, answer = ask("POST", "/api/retrieve", {"query": "notice to leave a flat", **more})
        assert status == 200, answer
        return answer

    return send


def sources(answer: Any) -> set[str]:
    return {result["source"] for result in answer["results"]}


def test_a_metadata_filter_prefers_on_any_engine_and_excludes_nothing(search: Search) -> None:
    answer = search(query="notice to a tenant", metadata_filter={"corpus": "legal_uk"}, explain=True)

    best = answer["results"][0]
    assert best["source"] == "uk1.md"
    assert best["ranking"]["found_by"] == ["filtered", "unfiltered"]
    assert best["ranking"]["ranks"]["filtered"] == 1
    assert best["score"] == best["ranking"]["score"] == pytest.approx(sum(best["ranking"]["contributions"].values()))
    assert [part["slice"] for part in answer["slices"]] == ["filtered", "unfiltered"]
    assert 0 < answer["slices"][0]["trust"] < 1
    assert answer["slices"][0]["reason"]
    assert len(answer["results"]) == len(DOCUMENTS)


def test_a_strict_filter_excludes_on_any_engine(search: Search) -> None:
    wanted = {"metadata_filter": {"corpus": "legal_uk"}, "filter_mode": "strict"}

    assert sources(search(**wanted)) == {"uk1.md"}
    assert sources(search(**wanted, version_filter="2")) == set()


def test_a_request_without_a_corpus_is_one_search(search: Search) -> None:
    answer = search(infer_filter=False, explain=True)

    assert Counted.searches == 1
    assert answer["corpora"] == []
    assert not any(result["ranking"]["contributions"] for result in answer["results"])


@pytest.mark.parametrize("configured", [None, CORPORA])
def test_one_corpus_has_its_size_the_reranking_and_search_k(
    search: Search, monkeypatch: pytest.MonkeyPatch, configured: str | None
) -> None:
    for name, value in {"LARGE_RETRIEVAL_SIZE_SINGLE_CORPUS": "2", "SEARCH_K": "1"}.items():
        monkeypatch.setenv(name, value)
    if configured:
        monkeypatch.setenv("MULTI_CORPUS_METADATA", configured)

    answer = search(query="deposit of a flat", corpus_filter="legal_us", infer_filter=False, explain=True)

    assert answer["corpora"] == [{"name": "legal_us", "candidates": 2, "results": 1}]
    assert [part["corpus"] for part in answer["slices"]] == ["legal_us"]
    assert answer["results"][0]["source"] == "us2.md"
    assert answer["results"][0]["ranking"]["contributions"].keys() >= {"phrase", "frequency", "proximity", "metadata"}
    assert Counted.searches == 1
    assert len(search(corpus_filter="legal_us", top_k=2)["results"]) == 2


def test_an_empty_corpus_is_an_error_only_if_some_are_configured(
    ask: Call, search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert search(corpus_filter="legal_fr")["results"] == []

    monkeypatch.setenv("MULTI_CORPUS_METADATA", CORPORA)
    query.service.cache_clear()
    status, answer = ask("POST", "/api/retrieve", {"query": "q", "corpus_filter": "legal_fr"})

    assert (status, answer["error"]["code"]) == (400, "UnknownCorpus")
    assert "choose one of legal_us, legal_uk, legislation_nz, or all" in answer["error"]["message"]


def test_all_is_balanced_over_the_corpora_of_the_documents(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LARGE_RETRIEVAL_SIZE_ALL_CORPUS", "2")
    search(corpus_filter="all")
    Counted.searches = 0

    answer = search(query="notice board in the hall", corpus_filter="all", infer_filter=False, explain=True, top_k=2)

    assert Counted.searches == 3  # of each corpus and of everything; the corpora are remembered
    assert [(count["name"], count["candidates"]) for count in answer["corpora"]] == [("legal_uk", 1), ("legal_us", 2)]
    assert [part["corpus"] for part in answer["slices"]] == ["legal_uk", "legal_us", "all"]
    assert "other.md" in sources(answer)  # it has no corpus
    assert all(result["ranking"]["contributions"] for result in answer["results"])
    assert answer["notes"] == []


def test_all_finds_documents_without_a_corpus(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = [{"id": each["id"], "text": each["text"]} for each in DOCUMENTS]
    monkeypatch.setenv("RETRIEVAL_ENGINE_CONFIG", json.dumps({"documents": plain}))

    answer = search(corpus_filter="all")

    assert (len(answer["results"]), answer["corpora"], answer["notes"]) == (len(DOCUMENTS), [], [])


def test_corpora_that_cannot_be_listed_leave_one_search_and_a_note(
    search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any, **__: Any) -> Any:
        raise RagStackError("out of order")

    monkeypatch.setattr("ragstack_common.search.values.distinct_values", broken)

    answer = search(corpus_filter="all")

    assert len(answer["results"]) == len(DOCUMENTS)
    assert answer["notes"] == [{"kind": "corpora", "text": "The search was not balanced over corpora: out of order"}]


def test_a_version_excludes_every_other_and_its_type_counts(search: Search) -> None:
    assert sources(search(version_filter="2")) == {"us2.md"}
    assert sources(search(version_filter=3)) == {"other.md"}
    assert sources(search(version_filter="3")) == set()
    assert sources(search(version_filter="2", corpus_filter="legal_uk")) == set()


def test_the_corpora_are_configured_ones_and_found_ones(
    ask: Call, corpora: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MULTI_CORPUS_METADATA", "legislation_nz,legal_us")

    assert ask("GET", "/api/corpora") == (
        200,
        {
            "corpora": [
                {"name": "legislation_nz", "configured": True, "searchable": False, "documents": None},
                {"name": "legal_us", "configured": True, "searchable": True, "documents": None},
                {"name": "legal_uk", "configured": False, "searchable": True, "documents": None},
            ],
            "complete": True,
        },
    )


def test_the_versions_are_in_their_natural_order_and_keep_their_types(ask: Call) -> None:
    assert ask("GET", "/api/versions") == (
        200,
        {"versions": [3, "1", "2", "10"], "documents": None, "complete": True},
    )


def test_searchable_values_are_cached_for_a_minute(ask: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(query.service(), "_clock", lambda: now[0])
    ask("GET", "/api/versions")
    first = Counted.searches

    now[0] += catalogue.REMEMBERED_SECONDS - 1
    ask("GET", "/api/versions")
    remembered = Counted.searches
    now[0] += 1
    ask("GET", "/api/versions")

    assert first == remembered > 0
    assert Counted.searches == 2 * first


def test_the_error_of_an_engine_is_returned_and_not_remembered(ask: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any, **__: Any) -> Any:
        raise RagStackError("out of order")

    with monkeypatch.context() as patch:
        patch.setattr(Counted, "retrieve", broken)
        failed = ask("GET", "/api/corpora")

    assert failed == (
        500,
        {"error": {"code": "RagStack", "message": "out of order", "details": [], "requestId": REQUEST_ID}},
    )
    assert ask("GET", "/api/corpora")[0] == 200


def test_tools_are_listed_and_run_in_the_form_of_their_own_interface(
    ask: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"leases": {"type": "in_memory", "documents": DOCUMENTS}}
    monkeypatch.setenv("RETRIEVER_TOOL_COLLECTIONS", json.dumps(config))

    listed = ask("GET", "/tools")
    ran = ask("POST", "/tools/retriever", {"input": {"collection_name": "leases", "texts": ["deposit"], "top_k": 1}})

    assert [tool["name"] for tool in listed[1]["tools"]] == ["retriever"]
    assert ran[0] == 200
    assert ran[1].keys() == {"success", "output", "stats"}
    assert [result["id"] for result in ran[1]["output"]["results"]] == ["us2"]
    assert ran[1]["output"]["count"] == 1


def test_tools_that_are_misconfigured_say_so_in_their_own_form(ask: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETRIEVER_TOOL_COLLECTIONS", '{"leases": 7}')

    for answer in (ask("GET", "/tools"), ask("POST", "/tools/retriever", {"input": {}})):
        assert answer[0] == 500
        assert answer[1]["success"] is False
        assert "RETRIEVER_TOOL_COLLECTIONS" in answer[1]["error"]


def test_the_description_names_exactly_the_errors_that_occur(ask: Call) -> None:
    _, described = ask("GET", "/openapi.json")

    statuses = {
        (method, path): set(operation["responses"])
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    }
    of_callers, always = {"401", "403"}, {"429", "502"}
    assert all(always <= each for each in statuses.values())
    assert {route for route, each in statuses.items() if not of_callers <= each} == {("get", "/health")}
    assert {route: each - always - of_callers for route, each in statuses.items()} == {
        ("post", "/api/retrieve"): {"200", "400", "default"},
        ("get", "/api/view"): {"200", "400", "404", "default"},
        ("post", "/api/view"): {"200", "400", "404", "default"},
        ("post", "/api/explain"): {"200", "400", "default"},
        ("post", "/api/ask"): {"200", "400", "default"},
        ("post", "/api/ask/stream"): {"200", "400", "default"},
        ("get", "/api/corpora"): {"200", "default"},
        ("get", "/api/gaps"): {"200", "default"},
        ("get", "/api/people"): {"200", "400", "default"},
        ("post", "/api/people/erase"): {"200", "400", "default"},
        ("get", "/api/settings"): {"200", "default"},
        ("post", "/api/gaps"): {"201", "400", "default"},
        ("patch", "/api/gaps/{id}"): {"200", "400", "404", "default"},
        ("get", "/api/versions"): {"200", "default"},
        ("get", "/tools"): {"200", "default"},
        ("post", "/tools/{name}"): {"200", "400", "default"},
        ("get", "/health"): {"200", "default"},
        ("post", "/api/documents"): {"201", "400", "default"},
        ("get", "/api/documents"): {"200", "400", "default"},
        ("get", "/api/documents/find"): {"200", "400", "default"},
        ("get", "/api/documents/{id}"): {"200", "400", "404", "default"},
        ("get", "/api/documents/{id}/download"): {"200", "400", "404", "default"},
        ("patch", "/api/documents/{id}"): {"202", "400", "404", "default"},
        ("delete", "/api/documents/{id}"): {"202", "400", "404", "default"},
        ("get", "/api/facets"): {"200", "400", "default"},
        ("get", "/api/status"): {"200", "default"},
        ("get", "/api/judgments"): {"200", "400", "default"},
        ("put", "/api/judgments"): {"200", "400", "default"},
        ("get", "/api/judgments/export"): {"200", "400", "default"},
        ("post", "/api/judgments/measure"): {"200", "400", "default"},
        ("get", "/api/conversations"): {"200", "400", "default"},
        ("delete", "/api/conversations"): {"200", "default"},
        ("get", "/api/conversations/{id}"): {"200", "400", "404", "default"},
        ("patch", "/api/conversations/{id}"): {"200", "400", "404", "default"},
        ("delete", "/api/conversations/{id}"): {"200", "400", "404", "default"},
        ("put", "/api/conversations/{id}/share"): {"200", "400", "404", "default"},
        ("delete", "/api/conversations/{id}/share"): {"200", "400", "404", "default"},
        ("get", "/api/shared/{id}"): {"200", "400", "404", "default"},
        ("get", "/api/me"): {"200", "default"},
        ("get", "/api/access"): {"200", "400", "default"},
        ("post", "/api/access"): {"200", "400", "default"},
        ("get", "/api/access/explain"): {"200", "400", "default"},
        ("post", "/api/access/explain"): {"200", "400", "default"},
        ("post", "/api/ingestion-jobs"): {"202", "400", "409", "default"},
        ("get", "/api/ingestion-jobs"): {"200", "400", "default"},
        ("get", "/api/ingestion-jobs/{id}"): {"200", "400", "404", "default"},
        ("get", "/api/failures"): {"200", "400", "default"},
        ("post", "/api/failures/replay"): {"200", "400", "404", "default"},
        ("post", "/api/failures/discard"): {"200", "400", "404", "default"},
    }
    schemas = described["components"]["schemas"]
    assert not {"ValidationError", "HTTPValidationError"} & set(schemas)
    assert {"Error", "ToolFailure", "RetrieveResponse"} <= set(schemas)


def test_an_engine_without_a_registry_explains_from_its_searches(ask: Call) -> None:
    def explained(document: str, **options: Any) -> Any:
        body = {"query": "notice to leave a flat", "document": document, **options}
        status, answer = ask("POST", "/api/explain", body)
        assert status == 200, answer
        return answer["reason"], answer["rank"], answer["text"]

    assert explained("uk1.md", top_k=5)[0] == "found"
    assert explained("us3.md", top_k=1)[0] == "ranked below"
    assert explained("us2.md", corpus_filter="legal_uk")[0] == "filtered out"
    assert 'the document has corpus "legal_us"' in explained("us2.md", corpus_filter="legal_uk")[2]
    reason, rank, text = explained("nothing.md")
    assert (reason, rank) == ("not among candidates", None)
    assert text.startswith("It is not among the 5 best results: check its name")
