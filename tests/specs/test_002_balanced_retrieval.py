"""The specification of the search pipeline, section by section: its example, its variables, its figures."""

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import chromadb
import pytest

from ragstack_common.access.callers import OPERATOR
from ragstack_common.answers.models.protocol import ModelPiece, ModelRequest, estimated_tokens
from ragstack_common.answers.quote.extractive import ExtractiveProvider
from ragstack_common.core.errors import ConfigurationError
from ragstack_common.embedding import EmbeddingError
from ragstack_common.knowledge_base import KnowledgeBase, aretrieve_knowledge, retrieve_knowledge
from ragstack_common.reranking import (
    configure_reranker,
)
from ragstack_common.search import (
    RetrievalBackend,
    RetrievedChunk,
    create_retrieval_backend,
    register_backend,
)
from ragstack_common.search.models import SearchOutcome
from ragstack_common.search.wrappers.multislice import MultiSliceBackend
from ragstack_common.services.ask import AskService
from ragstack_common.services.ask_models import AskRequest, AskResponse
from ragstack_common.services.search import QueryService
from ragstack_common.services.search_models import RetrieveRequest
from ragstack_common.settings.answers import AnswerSettings
from ragstack_common.settings.search import QuerySettings
from tests.contract.cases.chroma import COLLECTION, closed, fill
from tests.contract.documents import Document
from tests.contract.in_memory import LookingUpBackend, holding
from tests.ragstack_local.support import ragstack
from tests.support.embedding_models import WORDS, add_minilm, make_model_folder

QUERY = "appeal to the land tribunal"
SIZES = {"legal_us": 400, "legal_uk": 6, "legislation_nz": 4}
CHEATSHEET = {
    "CHROMA_PERSIST_DIRECTORY": "chroma_db",
    "CHROMA_COLLECTION_NAME": "blert_1000",
    "EMBEDDING_MODEL": "models/bert_1890_1900_st_ft",
    "POOLING": "mean+max",
}
QUESTION = f"Where is a {WORDS[2]}?"
VARIABLES = (
    "MULTI_CORPUS_METADATA",
    "LARGE_RETRIEVAL_SIZE_ALL_CORPUS",
    "LARGE_RETRIEVAL_SIZE_SINGLE_CORPUS",
    "SEARCH_K",
)


def _documents() -> list[Document]:
    """One corpus is much larger than the others, and the answer is in the smallest."""
    cases = [
        Document(f"{corpus}-{n}", f"{corpus}-{n}.txt", f"An appeal to the {corpus} court, case {n}", {"corpus": corpus})
        for corpus, size in SIZES.items()
        for n in range(size)
    ]
    answer = "The appeal to the Land Tribunal is free."
    return [*cases, Document("answer", "answer.txt", answer, {"corpus": "legislation_nz"})]


@pytest.fixture(scope="module")
def store() -> dict[str, Any]:
    """The configuration of a backend that searches exactly, unlike an HNSW index, so that figures are exact."""
    register_backend("in_memory_by_id", LookingUpBackend)
    return holding(_documents())


@pytest.fixture(scope="module")
def chroma(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same in Chroma's HNSW index."""
    folder = tmp_path_factory.mktemp("chroma_db")
    with closed(chromadb.PersistentClient(folder)) as client:
        fill(client, _documents())
    return {"type": "chroma", "path": str(folder), "collection_name": COLLECTION}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `ragstack build` made a collection of three corpora, as the specification's cheatsheet says."""
    folder = tmp_path_factory.mktemp("built")
    model = make_model_folder(folder / "models" / "bert_1890_1900_st_ft")
    for corpus, size in {"legal_us": 9, "legal_uk": 2, "legislation_nz": 1}.items():
        for number in range(size):
            file = folder / corpus / f"case-{number}.md"
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"# Case {number}\n\nA {WORDS[2]} and a {WORDS[3]} in the {corpus} court, case {number}.")
        done = ragstack("build", corpus, data=folder, **CHEATSHEET)
        assert done.returncode == 0, done.stdout + done.stderr
    (folder / "targets").mkdir()
    (folder / "targets" / "legal.txt").write_text(
        "# of the legal team\nMULTI_CORPUS_METADATA=legal_us,legal_uk,legislation_nz\n"
        "LARGE_RETRIEVAL_SIZE_ALL_CORPUS=5\nLARGE_RETRIEVAL_SIZE_SINGLE_CORPUS=6\n\nSEARCH_K=4\n"
    )
    assert model.is_dir()
    return folder


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (*VARIABLES, "POOLING"):
        monkeypatch.delenv(name, raising=False)
    yield
    configure_reranker()


def search(
    store: dict[str, Any], query: str = QUERY, corpus_filter: str | None = "all", **members: Any
) -> SearchOutcome:
    """Search as the functions and the command line do, with the settings of the environment."""
    body = {"query": query, "corpus_filter": corpus_filter, "infer_filter": False, "deduplicate_by": "chunk"}
    engine = {"RETRIEVAL_ENGINE": "in_memory_by_id", "RETRIEVAL_TIMEOUT_SECONDS": "20"}
    service = QueryService(QuerySettings.from_env({**os.environ, **engine}), create_retrieval_backend(store))
    return asyncio.run(service.search(RetrieveRequest.model_validate({**body, **members}), OPERATOR))


class VectorStore:
    """What the example calls."""

    def __init__(self, backend: RetrievalBackend) -> None:
        self._backend = backend

    def similarity_search(self, query: str, k: int, filter: dict[str, Any]) -> list[RetrievedChunk]:  # noqa: A002
        return asyncio.run(self._backend.retrieve(query, top_k=k, filters=filter))


def test_section_3_the_example_pools_what_a_balanced_search_pools(store: dict[str, Any]) -> None:
    vector_store, query, pool = VectorStore(create_retrieval_backend(store)), QUERY, []
    for corpus in os.getenv("MULTI_CORPUS_METADATA", "legal_us,legal_uk,legislation_nz").split(","):
        docs = vector_store.similarity_search(
            query,
            k=int(os.getenv("LARGE_RETRIEVAL_SIZE_ALL_CORPUS", 200)),  # noqa: PLW1508 - as the example has it
            filter={"corpus": corpus},
        )
        pool.extend(docs)

    outcome = search(store)

    assert {count.name: count.candidates for count in outcome.corpora} == {
        name: sum(chunk.metadata["corpus"] == name for chunk in pool) for name in SIZES
    }
    assert {chunk.chunk_id for chunk in outcome.chunks} <= {chunk.chunk_id for chunk in pool}
    assert {count.candidates for count in outcome.corpora} == {200, 6, 5}


def test_section_3_the_variables_trade_recall_for_speed(store: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LARGE_RETRIEVAL_SIZE_ALL_CORPUS", "3")
    monkeypatch.setenv("MULTI_CORPUS_METADATA", "legal_us,legislation_nz")
    monkeypatch.setenv("SEARCH_K", "2")

    outcome = search(store)

    assert [(count.name, count.candidates) for count in outcome.corpora] == [("legal_us", 3), ("legislation_nz", 3)]
    assert len(outcome.chunks) == 2


def test_section_3_candidates_are_as_configured_if_fewer_than_the_results(
    store: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in zip(VARIABLES, (",".join(SIZES), "3", "3", "4"), strict=True):
        monkeypatch.setenv(name, value)

    everything, one = search(store), search(store, corpus_filter="legal_us")

    assert [count.candidates for count in everything.corpora] == [3, 3, 3]
    assert [count.candidates for count in one.corpora] == [3]
    assert (len(everything.chunks), len(one.chunks)) == (4, 3)


@pytest.mark.parametrize("everything", [None, "all"])
def test_section_7_configured_corpora_are_equal_also_without_a_filter(
    store: dict[str, Any], monkeypatch: pytest.MonkeyPatch, everything: str | None
) -> None:
    monkeypatch.setenv("MULTI_CORPUS_METADATA", ",".join(SIZES))
    monkeypatch.setenv("LARGE_RETRIEVAL_SIZE_ALL_CORPUS", "4")
    monkeypatch.setenv("SEARCH_K", "4")

    assert [count.candidates for count in search(store, corpus_filter=everything).corpora] == [4, 4, 4]


class Recorder(ExtractiveProvider):
    """Quotes, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[ModelRequest] = []

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        self.asked.append(request)
        return super().stream(request)


def ask(store: dict[str, Any], model: Recorder, body: dict[str, Any], **variables: str) -> AskResponse:
    """Answer the body of a request to /api/ask."""
    env = {"RETRIEVAL_ENGINE": "in_memory_by_id", **variables}
    engine = MultiSliceBackend(create_retrieval_backend(store), timeout_seconds=60)
    searches = QueryService(QuerySettings.from_env(env), engine)
    service = AskService(AnswerSettings.from_env(env), searches, model)
    return asyncio.run(service.ask(AskRequest.model_validate(body), OPERATOR))


@pytest.mark.parametrize("configured", [{"MULTI_CORPUS_METADATA": ",".join(SIZES)}, {}], ids=["configured", "found"])
def test_section_1_an_answer_quotes_reranked_balanced_passages(
    store: dict[str, Any], configured: dict[str, str]
) -> None:
    body = {"question": "Is the appeal to the Land Tribunal free?", "corpus_filter": "all"}

    answer = ask(store, Recorder(), body, **configured)

    assert {corpus.name: corpus.candidates for corpus in answer.corpora} == {
        "legal_us": 200,
        "legal_uk": 6,
        "legislation_nz": 5,
    }
    assert len(answer.sources) == 10
    assert answer.answer == '"The appeal to the Land Tribunal is free." [1]'
    assert [source.source for source in answer.sources if source.cited] == ["answer.txt"]


def test_section_4_ask_passes_the_corpus_to_the_search(store: dict[str, Any]) -> None:
    answer = ask(store, Recorder(), {"question": QUERY, "corpus_filter": "legal_uk"}, SEARCH_K="4")

    assert {source.metadata["corpus"] for source in answer.sources} == {"legal_uk"}
    assert len(answer.sources) == 4


def test_section_5_the_prompt_has_the_last_3000_tokens_of_the_history(store: dict[str, Any]) -> None:
    model = Recorder()
    turns = [
        {"role": role, "content": f"Turn {n}. " + "word " * 200} for n in range(12) for role in ("user", "assistant")
    ]

    first, last = (ask(store, model, {"question": QUERY, "chat_history": history}) for history in ([], turns))

    assert last.sources == first.sources
    prompt = model.asked[1].system_prompt
    assert model.asked[1].messages == model.asked[0].messages
    kept = [turn for turn in range(12) if f"Turn {turn}. " in prompt]
    assert kept == list(range(12 - len(kept), 12))
    conversation = prompt[prompt.index("<conversation-") : prompt.index("<passage-")]
    assert 2500 < estimated_tokens(conversation) < 3100


def test_section_6_the_reranker_orders_and_trims_the_candidates(store: dict[str, Any]) -> None:
    outcome = search(store)

    assert outcome.chunks[0].chunk_id == "answer"
    assert len(outcome.chunks) == 10 < sum(count.candidates for count in outcome.corpora)


def found(built: Path, *arguments: str, **env: str) -> dict[str, Any]:
    done = ragstack(
        "query", QUESTION, "--db-path", "chroma_db", "-c", "blert_1000", *arguments, "--json", data=built, **env
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_section_2_the_manifest_keeps_retriever_and_store_in_sync(built: Path) -> None:
    manifest = (built / "chroma_db/manifests/blert_1000.txt").read_text()

    assert "pooling = mean+max\n" in manifest
    assert "chunk_size = 1000\nchunk_overlap = 100\n" in manifest
    assert len(found(built)["results"]) == 5  # with the model and the pooling of the manifest, and no variable


def test_section_2_the_manifest_is_also_where_the_specification_has_it(built: Path) -> None:
    done = ragstack("build", "legal_uk", "--manifest", "create/bert/output", data=built, **CHEATSHEET)

    assert done.returncode == 0, done.stderr
    written = built / "create" / "bert" / "output" / "blert_1000.txt"
    assert written.read_text() == (built / "chroma_db/manifests/blert_1000.txt").read_text()
    assert str(written.relative_to(built)) in done.stdout


def test_section_8_a_target_is_in_the_folder_of_the_backend(built: Path) -> None:
    folder = built / "backend" / "targets"
    folder.mkdir(parents=True)
    (folder / "short.txt").write_text("SEARCH_K=2\n")
    (folder / "legal.txt").write_text("SEARCH_K=1\n")

    assert len(found(built, "--target", "short", "--corpus", "all")["results"]) == 2
    assert len(found(built, "--target", "legal", "--corpus", "all")["results"]) == 4  # targets/legal.txt is first


def test_section_2_missing_settings_come_from_the_manifest(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = CHEATSHEET["EMBEDDING_MODEL"]

    assert len(found(built, EMBEDDING_MODEL=model)["results"]) == 5
    assert "unchanged" in ragstack("build", "legal_uk", data=built, **{**CHEATSHEET, "POOLING": ""}).stdout
    monkeypatch.setenv("EMBEDDING_MODEL", str(built / model))
    with KnowledgeBase("blert_1000", built / "chroma_db") as base:
        assert len(base.retrieve(QUESTION)) == 5


@pytest.mark.parametrize("pooling", [None, "mean+max"])
@pytest.mark.parametrize("model", [None, CHEATSHEET["EMBEDDING_MODEL"]])
async def test_section_8_graph_nodes_take_missing_settings_from_the_manifest(
    built: Path, monkeypatch: pytest.MonkeyPatch, model: str | None, pooling: str | None
) -> None:
    monkeypatch.chdir(built)
    for name, value in (("EMBEDDING_MODEL", model), ("POOLING", pooling)):
        if value is not None:
            monkeypatch.setenv(name, value)
    options: dict[str, Any] = {"query": QUESTION, "collection_name": "blert_1000", "db_path": "chroma_db"}

    states = [retrieve_knowledge({"messages": []}, **options), await aretrieve_knowledge({"messages": []}, **options)]

    for state in states:
        assert "retrieval_error" not in state["context"]
        assert len(state["context"]["documents"]) == 5


def test_section_8_a_node_reports_a_contradiction_of_the_manifest(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLING", "max")

    state = retrieve_knowledge({}, QUESTION, "blert_1000", str(built / "chroma_db"))

    assert state["context"]["documents"] == []
    assert state["context"]["retrieval_error"].startswith("POOLING=max contradicts the collection blert_1000")


@pytest.mark.parametrize("named", [{"EMBEDDING_MODEL": "minilm"}, {"RAGSTACK_EMBEDDING": ""}], ids=["named", "default"])
def test_section_8_minilm_pools_by_mean_and_maximum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: dict[str, str]
) -> None:
    add_minilm(tmp_path / "cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "bank").mkdir()
    (tmp_path / "bank" / "deposit.md").write_text("# Deposit\n\nA deposit is refunded within thirty days.\n")
    (tmp_path / "bank" / "loan.md").write_text("# Loan\n\nA loan has a fixed rate.\n")
    place = {"CHROMA_PERSIST_DIRECTORY": "chroma_db", "CHROMA_COLLECTION_NAME": "bank", "RAGSTACK_EMBEDDING": ""}

    done = ragstack("build", "bank", data=tmp_path, POOLING="mean+max", **{**place, **named})

    assert done.returncode == 0, done.stderr
    assert "pooling = mean+max\n" in (tmp_path / "chroma_db/manifests/bank.txt").read_text()
    query = ragstack("query", "When is my deposit paid back?", "--engine", "chroma", "--json", data=tmp_path, **place)
    assert json.loads(query.stdout)["results"][0]["source"].endswith("deposit.md")
    with KnowledgeBase("bank", tmp_path / "chroma_db") as base:
        assert len(base.retrieve("deposit")) == 2
    monkeypatch.setenv("POOLING", "max")
    with pytest.raises((ConfigurationError, EmbeddingError), match=r"was built with mean\+max"):
        KnowledgeBase("bank", tmp_path / "chroma_db")


def test_section_8_the_own_pooling_of_a_model_may_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_minilm(tmp_path / "cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "bank").mkdir()
    (tmp_path / "bank" / "deposit.md").write_text("# Deposit\n\nA deposit is refunded within thirty days.\n")
    place = {"CHROMA_PERSIST_DIRECTORY": "chroma_db", "EMBEDDING_MODEL": "minilm"}

    assert ragstack("build", "bank", data=tmp_path, **place).returncode == 0

    monkeypatch.setenv("POOLING", "mean")
    with KnowledgeBase(db_path=tmp_path / "chroma_db") as base:
        assert len(base.retrieve("deposit")) == 1
    monkeypatch.setenv("POOLING", "max")
    with pytest.raises(EmbeddingError, match=r"was made with the embedding onnx:minilm-int8@\w+, not with .*#max"):
        KnowledgeBase(db_path=tmp_path / "chroma_db")


def test_section_8_the_error_says_how_to_export_a_model_to_onnx(built: Path) -> None:
    folder = built / "models" / "sentence_transformers"
    folder.mkdir()
    for name in ("modules.json", "model.safetensors", "tokenizer.json"):
        (folder / name).write_text("{}")

    done = ragstack("build", "legal_uk", data=built, **{**CHEATSHEET, "EMBEDDING_MODEL": str(folder)})

    assert done.returncode == 3
    shown = " ".join(done.stderr.split())
    assert "has the weights of a model, but no model.onnx. Export it: `pip install optimum-onnx[onnxruntime]`" in shown
    assert f"--model {folder} {folder}/onnx" in shown


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("POOLING", "mean", "POOLING=mean contradicts the collection blert_1000, which was built with mean+max"),
        ("CHUNK_SIZE", "500", "CHUNK_SIZE=500 contradicts the collection blert_1000, which was built with 1000"),
        ("CHUNK_OVERLAP", "50", "CHUNK_OVERLAP=50 contradicts the collection blert_1000, which was built with 100"),
        ("EMBEDDING_MODEL", "hashed", "was made with the embedding onnx:"),
    ],
)
def test_section_2_a_contradiction_of_the_manifest_is_an_error(
    built: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, words: str
) -> None:
    done = ragstack("query", QUESTION, "--engine", "chroma", data=built, **{**CHEATSHEET, variable: value})

    assert done.returncode == 3
    assert words in done.stderr
    monkeypatch.setenv(variable, value)
    with pytest.raises((ConfigurationError, EmbeddingError), match=re.escape(words)):
        KnowledgeBase("blert_1000", built / "chroma_db")


@pytest.mark.parametrize("configured", [",".join(SIZES), ""], ids=["configured", "found"])
def test_section_3_a_search_on_the_command_line_is_balanced(built: Path, configured: str) -> None:
    corpora = {"MULTI_CORPUS_METADATA": configured, "LARGE_RETRIEVAL_SIZE_ALL_CORPUS": "4", "SEARCH_K": "3"}

    everything = found(built, "--corpus", "all", "--explain", **corpora)
    one = found(built, "--corpus", "legal_us", "--explain", LARGE_RETRIEVAL_SIZE_SINGLE_CORPUS="7", **corpora)

    assert {each["name"]: each["candidates"] for each in everything["corpora"]} == {
        "legal_us": 4,
        "legal_uk": 2,
        "legislation_nz": 1,
    }
    assert len(everything["results"]) == 3
    assert set(everything["results"][0]["ranking"]["contributions"]) >= {"phrase", "frequency", "proximity", "metadata"}
    assert one["corpora"] == [{"name": "legal_us", "candidates": 7, "results": 3}]
    assert set(one["results"][0]["ranking"]["contributions"]) >= {"phrase", "frequency", "proximity", "metadata"}
    assert {result["metadata"]["corpus"] for result in one["results"]} == {"legal_us"}


def test_section_1_a_question_is_answered_from_a_chroma_collection(built: Path) -> None:
    options = ("--db-path", "chroma_db", "-c", "blert_1000", "--target", "legal", "--json")
    question = f"Where is a {WORDS[2]} in the legal_uk court?"

    done = ragstack("ask", question, *options, data=built)
    turns = ragstack("chat", *options, data=built, typed=f"{question}\n{question}\n/corpus legal_us\n{question}\n")

    answer = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert {each["name"] for each in answer["corpora"]} == set(SIZES)
    assert len(answer["sources"]) == 4
    assert {source["metadata"]["corpus"] for source in answer["sources"] if source["cited"]} == {"legal_uk"}
    first, second, third = map(json.loads, turns.stdout.splitlines())
    assert first["sources"] == second["sources"] == answer["sources"]  # earlier turns change nothing
    assert {source["metadata"]["corpus"] for source in third["sources"]} == {"legal_us"}


def test_section_8_a_target_is_a_file_of_settings_by_name(built: Path) -> None:
    by_name = found(built, "--target", "legal", SEARCH_K="2")
    by_file = found(built, "--settings", "targets/legal.txt")

    assert len(by_name["results"]) == len(by_file["results"]) == 4
    assert max(each["candidates"] for each in by_name["corpora"]) == 5
    assert len(found(built, "--target", "legal", "--top-k", "1")["results"]) == 1


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        ("SEARCHK=4", (), "there is no setting SEARCHK here"),
        ("SEARCH_K=4\nsearch_k=5", (), "line 2 sets search_k again"),
        ("SEARCH_K", (), "line 1 is not NAME=VALUE"),
        (None, (), "targets/odd.txt cannot be read: No such file or directory"),
        ("SEARCH_K=4", ("--settings", "x.json"), "give it without --settings"),
        ("SEARCH_K=4", ("--engine", "bedrock"), "an API has the settings of its deployment"),
    ],
)
def test_section_8_a_target_that_cannot_be_used_is_wrong_usage(
    tmp_path: Path, text: str | None, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "targets").mkdir()
    if text is not None:
        (tmp_path / "targets/odd.txt").write_text(text)

    engine = () if arguments[:1] == ("--engine",) else ("--engine", "chroma")
    done = ragstack("query", "x", "--target", "odd", *engine, *arguments, data=tmp_path)

    assert done.returncode == 2
    assert words in " ".join(done.stderr.replace("│", " ").split())
