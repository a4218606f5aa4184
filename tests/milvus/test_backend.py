"""The Milvus engine on a real Milvus Lite, as a file and over TCP."""

import asyncio
import itertools
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from milvus_lite.adapter.grpc.server import start_server_in_thread
from pymilvus import DataType, MilvusClient

from ragstack_common.access.callers import OPERATOR
from ragstack_common.core import errors
from ragstack_common.embedding import HashedEmbedding
from ragstack_common.search import SearchRequest
from ragstack_common.search.engines.milvus import backend
from ragstack_common.search.engines.milvus.backend import MilvusBackend
from ragstack_common.search.engines.milvus.collection import MilvusDocument
from ragstack_common.services.search import QueryService
from ragstack_common.services.search_models import RetrieveRequest
from tests.support.spans import recorded

pytestmark = pytest.mark.xdist_group("milvus lite")

_numbers = itertools.count()
PATIENT: Any = {"timeout_seconds": 60.0}
"""A busy machine may pause for longer than the default deadline."""

PUMP = MilvusDocument(1, "Grease the bearings of the water pump.", "pump.md", {"corpus": "manual", "hours": 500})
LEASE = MilvusDocument(2, "A lease over seven years must be registered.", "lease.md", {"corpus": "legal"})
VALVE = MilvusDocument(3, "Close the inlet valve of the water pump.", "valve.md", {"corpus": "manual", "public": True})


@pytest.fixture
def name() -> str:
    return f"c{next(_numbers)}"


@pytest.fixture
def make(file: Path, client: MilvusClient, name: str) -> Callable[..., MilvusBackend]:
    return lambda **options: MilvusBackend(str(file), name, **{**PATIENT, **options})


Make = Callable[..., MilvusBackend]


@pytest.fixture(scope="module")
def once(file: Path, client: MilvusClient) -> Callable[[str, Callable[[Make], None]], Make]:
    """Collections for read-only cases, created at the first call."""
    made: set[str] = set()

    def of(name: str, fill: Callable[[Make], None]) -> Make:
        def make(**options: Any) -> MilvusBackend:
            return MilvusBackend(str(file), name, **{**PATIENT, **options})

        if name not in made:
            fill(make)
            made.add(name)
        return make

    return of


Once = Callable[[str, Callable[[Make], None]], Make]


def run(backend: MilvusBackend, *steps: Callable[[MilvusBackend], Awaitable[Any]]) -> list[Any]:
    async def all_steps() -> list[Any]:
        async with backend:
            return [await step(backend) for step in steps]

    return asyncio.run(all_steps())


def filled(make: Make, *documents: MilvusDocument, **created: Any) -> None:
    run(make(), lambda b: b.create(integer_ids=True, **created), lambda b: b.add(documents))


def test_the_query_function_searches_the_configured_collection(file: Path, once: Once) -> None:
    once("queried", lambda make: filled(make, PUMP))
    env = {
        "RETRIEVAL_ENGINE": "milvus",
        "RETRIEVAL_ENGINE_CONFIG": '{"collection_name": "queried", "timeout_seconds": 60}',
        "MILVUS_ADDRESS": str(file),
    }

    response = QueryService.from_env(env).retrieve(RetrieveRequest(query="water pump"), OPERATOR)

    assert [result.source for result in response.results] == ["pump.md"]


def ids(chunks: list[Any]) -> list[str]:
    return [str(chunk.chunk_id) for chunk in chunks]


def test_a_document_is_found_with_its_id_source_and_metadata(make: Make, name: str) -> None:
    filled(make, PUMP, LEASE)

    (chunk,) = run(make(), lambda b: b.retrieve("water pump bearings", top_k=1))[0]

    assert (chunk.content, chunk.source, chunk.chunk_id) == (PUMP.text, "pump.md", "1")
    assert chunk.metadata == {"corpus": "manual", "hours": 500, "source": "pump.md"}
    assert chunk.location == {"type": "MILVUS", "collection": name, "id": 1}


@pytest.mark.parametrize("metric", ["COSINE", "IP", "L2"])
def test_every_metric_gives_scores_from_0_to_1_best_first(
    make: Make, client: MilvusClient, name: str, metric: str
) -> None:
    foreign(client, name, VECTOR, ("text", DataType.VARCHAR, STRING), metric=metric)
    vectors = HashedEmbedding().embed([PUMP.text, LEASE.text, VALVE.text]).tolist()
    client.insert(name, [{"pk": n, "v": vector, "text": str(n)} for n, vector in enumerate(vectors, start=1)])

    found = run(make(embedding="hashed"), lambda b: b.retrieve(PUMP.text, top_k=3))[0]

    assert ids(found)[0] == "1"
    assert found[0].score == pytest.approx(1.0, abs=1e-5)
    assert 1.0 > found[1].score > found[2].score >= 0.0


def test_several_queries_are_one_search(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(make, PUMP, LEASE, VALVE)
    searched: list[int] = []
    search = MilvusClient.search

    def note(self: Any, *arguments: Any, **named: Any) -> Any:
        searched.append(len(named["data"]))
        return search(self, *arguments, **named)

    monkeypatch.setattr(MilvusClient, "search", note)

    answers = run(make(), lambda b: b.retrieve_batch(["water pump", "lease", "inlet valve"], top_k=1))[0]

    assert [ids(answer) for answer in answers] == [["1"], ["2"], ["3"]]
    assert searched == [3]


def test_a_batch_is_a_span_with_the_attributes_of_the_specification(make: Make) -> None:
    filled(make, PUMP, LEASE)

    with recorded() as heard:
        run(make(), lambda b: b.retrieve_batch(["water pump", "lease"], top_k=1, filters={"corpus": "manual"}))

    assert heard.five("retrieve milvus") == ("SEMANTIC", 1, 1, "none", "manual")


def test_a_foreign_collection_with_integer_ids_is_indexed(make: Make, client: MilvusClient, name: str) -> None:
    foreign(client, name, VECTOR, ("content", DataType.VARCHAR, STRING), ("path", DataType.VARCHAR, STRING))
    document = {"id": 7, "content": PUMP.text, "source": "pump.md"}

    async def refused(b: MilvusBackend) -> list[Any]:
        with pytest.raises(errors.IndexingError, match=r"seven: The ids of c\d+ are whole numbers"):
            await b.index([{**document, "id": "seven"}])
        return await b.retrieve("water pump")

    ids_, found, still = run(
        make(text_field="content", embedding="hashed"),
        lambda b: b.index([document]),
        lambda b: b.retrieve("water pump"),
        refused,
    )

    assert ids_ == ["7"]
    # Two searches of Milvus may differ in the last digits of a score.
    for chunks in (found, still):
        assert [(chunk.chunk_id, chunk.content, chunk.source) for chunk in chunks] == [("7", PUMP.text, "pump.md")]


def test_documents_are_indexed_into_the_partition_that_is_searched(make: Make) -> None:
    run(make(), lambda b: b.create(partition_names=["manuals", "contracts"]))
    document = {"id": "pump", "content": PUMP.text}

    _, of_manuals = run(
        make(partition_names=["manuals"]), lambda b: b.index([document]), lambda b: b.retrieve("water pump")
    )
    (of_contracts,) = run(make(partition_names=["contracts"]), lambda b: b.retrieve("water pump"))

    assert (ids(of_manuals), of_contracts) == (["pump"], [])
    with pytest.raises(errors.InvalidRequestError, match="searches manuals, contracts: index with a backend of one"):
        run(make(partition_names=["manuals", "contracts"]), lambda b: b.index([document]))


def test_only_the_named_partitions_are_searched(make: Make) -> None:
    run(
        make(),
        lambda b: b.create(partition_names=["manuals", "contracts"], integer_ids=True),
        lambda b: b.add([PUMP], "manuals"),
        lambda b: b.add([LEASE], "contracts"),
        lambda b: b.add([VALVE]),
    )

    found = [
        run(make(partition_names=chosen), lambda b: b.retrieve("water pump lease", top_k=5), lambda b: b.get_by_id("1"))
        for chosen in (None, ["manuals"], ["manuals", "contracts"], ["contracts"])
    ]

    assert [sorted(ids(chunks)) for chunks, _ in found] == [["1", "2", "3"], ["1"], ["1", "2"], ["2"]]
    assert [chunk is not None for _, chunk in found] == [True, True, True, False]


def test_results_are_checked_against_the_filter_again(make: Make) -> None:
    """Milvus expressions pass a few wrong values; the filter itself decides."""
    many = [MilvusDocument(n, f"water pump number {n}", metadata={"n": 1}) for n in range(10, 30)]
    filled(make, *many, MilvusDocument(1, "lease", metadata={"n": True}), MilvusDocument(2, "a", metadata={'q"': "y"}))

    true, number, odd = run(
        make(),
        lambda b: b.retrieve("water pump", top_k=2, filters={"n": True}),
        lambda b: b.retrieve("water pump", top_k=50, filters={"n": 1}),
        lambda b: b.retrieve("water pump", top_k=2, filters={'q"': "y"}),
    )

    assert ids(true) == ["1"]  # Lite takes true for 1
    assert sorted(map(int, map(str, ids(number)))) == list(range(10, 30))
    assert ids(odd) == ["2"]  # the key does not stand in the expression


def test_a_filter_with_too_many_candidates_is_an_error(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the clause that Milvus cannot express."""
    filled(make, PUMP, LEASE, VALVE)
    monkeypatch.setattr(backend, "MAX_CANDIDATES", 2)

    with pytest.raises(errors.InvalidFilterError, match=r"equals\(q\", 'y'\)"):
        run(make(), lambda b: b.retrieve("water pump", top_k=1, filters={'q"': "y"}))


@pytest.mark.parametrize("chunk_id", ["1.0", "01x", "--1", "1 or 1 == 1", "9" * 400, str(2**63), "", "\u0661"])
def test_an_id_that_is_not_an_integer_is_not_found(once: Once, chunk_id: str) -> None:
    make = once("ids", lambda make: filled(make, PUMP))

    assert run(make(), lambda b: b.get_by_id(chunk_id)) == [None]


def test_a_missing_collection_is_an_error_and_unhealthy(make: Make, name: str) -> None:
    with pytest.raises(errors.CollectionNotFoundError, match=name):
        run(make(), lambda b: b.retrieve("water"))
    assert run(make(), lambda b: b.health_check()) == [False]


def test_a_missing_partition_is_an_error(make: Make) -> None:
    filled(make, PUMP)

    with pytest.raises(errors.PartitionNotFoundError, match="nowhere"):
        run(make(partition_names=["nowhere"]), lambda b: b.retrieve("water"))


def test_a_dimension_mismatch_names_both_dimensions(make: Make) -> None:
    filled(make, PUMP)

    other = HashedEmbedding()
    other.dimension = 8

    with pytest.raises(errors.DimensionMismatchError, match=r"have 1024 dimensions.* 8:"):
        run(make(embedding=other), lambda b: b.retrieve("water"))


def test_another_embedding_is_an_error_with_both_names(make: Make) -> None:
    filled(make, PUMP)
    other = HashedEmbedding()
    other.name = "other"

    with pytest.raises(errors.EmbeddingError, match=r"hashed.*other"):
        run(make(embedding=other), lambda b: b.retrieve("water"))


def test_a_collection_without_a_recorded_embedding_needs_one(make: Make, client: MilvusClient, name: str) -> None:
    """Vectors of other models have 1,024 dimensions too, and would be compared with hashed ones."""
    foreign(client, name, VECTOR, ("text", DataType.VARCHAR, STRING))

    with pytest.raises(errors.ConfigurationError, match="does not record the embedding it was made with: give it"):
        run(make(), lambda b: b.retrieve("water"))
    with pytest.raises(errors.ConfigurationError, match="does not record the embedding it was made with: give it"):
        run(make(), lambda b: b.index([{"id": "7", "content": PUMP.text}]))


def test_a_collection_that_is_created_again_is_searched(make: Make, client: MilvusClient, name: str) -> None:
    filled(make, PUMP)

    async def steps(backend: MilvusBackend) -> list[Any]:
        before = await backend.retrieve("water pump")
        client.drop_collection(name)
        with pytest.raises(errors.CollectionNotFoundError):
            await backend.retrieve("water pump")
        await backend.create()
        await backend.add([MilvusDocument("x", "water pump")])
        return [ids(before), ids(await backend.retrieve("water pump"))]

    assert run(make(), steps) == [[["1"], ["x"]]]


def test_a_collection_that_is_not_loaded_is_loaded(make: Make, client: MilvusClient, name: str) -> None:
    filled(make, PUMP)
    client.release_collection(name)

    assert ids(run(make(), lambda b: b.retrieve("water pump"))[0]) == ["1"]


@pytest.mark.parametrize(
    "document",
    [
        MilvusDocument("1", "a"),
        MilvusDocument(2**63, "a"),
        MilvusDocument(1, "x" * 65_536),
        MilvusDocument(1, "\ud800"),
        MilvusDocument(1, "a", metadata={"n": object()}),
        MilvusDocument(1, "a", metadata={"hours": 1.5}),
        MilvusDocument(1, "a", metadata={"corpus": ["a"]}),
    ],
)
def test_a_rejected_document_prevents_the_whole_write(once: Once, document: MilvusDocument) -> None:
    make = once("refusing", lambda make: filled(make, columns=COLUMNS))

    with pytest.raises((errors.InvalidDocumentError, errors.RetrievalError)):
        run(make(), lambda b: b.add([PUMP, document]))
    assert run(make(), lambda b: b.retrieve("water")) == [[]]


COLUMNS = {"corpus": "string", "hours": "integer", "weight": "number", "public": "boolean"}


def test_an_attribute_in_a_column_looks_like_one_in_json(make: Make) -> None:
    filled(make, PUMP, LEASE, VALVE, columns=COLUMNS)

    chunk, legal, public = run(
        make(),
        lambda b: b.get_by_id("1"),
        lambda b: b.retrieve("water", filters={"$and": [{"corpus": "legal"}, {"hours": {"$ne": 500}}]}),
        lambda b: b.retrieve("water", filters={"public": True}),
    )

    assert chunk.metadata == {"corpus": "manual", "hours": 500, "source": "pump.md"}
    assert (ids(legal), ids(public)) == (["2"], ["3"])


@pytest.mark.parametrize("columns", [{"id": "string"}, {"": "string"}, {"a": "list"}])
def test_an_invalid_column_is_an_error(make: Make, columns: dict[str, str]) -> None:
    with pytest.raises((errors.ConfigurationError, errors.RetrievalError)):
        run(make(), lambda b: b.create(columns=columns))


def foreign(
    client: MilvusClient,
    name: str,
    *fields: tuple[str, DataType, dict[str, Any]],
    dynamic: bool = False,
    metric: str = "COSINE",
) -> None:
    schema = client.create_schema(auto_id=False, enable_dynamic_field=dynamic)
    schema.add_field("pk", DataType.INT64, is_primary=True)
    for field, kind, options in fields:
        schema.add_field(field, kind, **options)
    index = client.prepare_index_params("v", index_type="AUTOINDEX", metric_type=metric)
    client.create_collection(name, schema=schema, index_params=index)


VECTOR = ("v", DataType.FLOAT_VECTOR, {"dim": HashedEmbedding().dimension})
STRING = {"max_length": 99}


def test_an_ambiguous_text_field_must_be_chosen(make: Make, client: MilvusClient, name: str) -> None:
    foreign(client, name, VECTOR, ("left", DataType.VARCHAR, STRING), ("right", DataType.VARCHAR, STRING))
    row = {"pk": 7, "v": HashedEmbedding().embed_query("pump").tolist(), "left": "pump", "right": "r.md"}
    client.insert(name, [row])

    with pytest.raises(errors.ConfigurationError, match=r"text_field.*left, right"):
        run(make(), lambda b: b.retrieve("pump"))
    chosen = make(text_field="left", source_field="right", embedding="hashed")
    (chunk,) = run(chosen, lambda b: b.retrieve("pump"))[0]

    assert (chunk.content, chunk.source, chunk.metadata, chunk.chunk_id) == ("pump", "r.md", {"right": "r.md"}, "7")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vector_field": "w"}, "no field 'w' for vector_field"),
        ({"text_field": "w"}, "no field 'w' for text_field"),
        ({"metadata_field": "w"}, "no field 'w' for metadata_field"),
    ],
)
def test_a_missing_field_is_an_error(once: Once, client: MilvusClient, options: dict[str, str], message: str) -> None:
    make = once("foreign", lambda _make: foreign(client, "foreign", VECTOR, ("text", DataType.VARCHAR, STRING)))

    with pytest.raises(errors.ConfigurationError, match=message):
        run(make(**options), lambda b: b.retrieve("pump"))


def test_a_foreign_collection_needs_a_field_for_attributes(make: Make, client: MilvusClient, name: str) -> None:
    foreign(client, name, VECTOR, ("text", DataType.VARCHAR, STRING))
    plain = {"id": 7, "content": PUMP.text}

    with pytest.raises(errors.InvalidDocumentError, match="no field for the attribute 'corpus'"):
        run(make(embedding="hashed"), lambda b: b.add([PUMP]))
    _, (chunk,) = run(make(embedding="hashed"), lambda b: b.index([plain]), lambda b: b.retrieve("water pump"))

    assert (chunk.source, chunk.metadata) == (f"{name}/7", {})


def test_a_chunk_without_a_source_is_its_own_document(make: Make, client: MilvusClient, name: str) -> None:
    foreign(client, name, VECTOR, dynamic=True)
    vector = HashedEmbedding().embed_query("pump").tolist()
    client.insert(name, [{"pk": n, "v": vector, "text": f"pump {n}", "corpus": "manual"} for n in (1, 2)])

    outcome = run(make(embedding="hashed"), lambda b: b.search(SearchRequest("pump", deduplicate_by="document")))[0]

    assert [chunk.source for chunk in outcome.chunks] == [f"{name}/1", f"{name}/2"]
    assert outcome.chunks[0].metadata["corpus"] == "manual"


@pytest.mark.parametrize("uri", ["lite", "ftp://x", "/etc/passwd", ""])
def test_an_invalid_address_is_an_error(uri: str) -> None:
    with pytest.raises(errors.ConfigurationError, match="not an address of Milvus"):
        MilvusBackend(uri, "c")


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(errors.RetrievalError, match="not exists"):
        run(MilvusBackend(str(tmp_path / "no" / "lite.db"), "c"), lambda b: b.create())


def test_a_search_does_not_create_a_file(tmp_path: Path) -> None:
    path = tmp_path / "lite.db"

    with pytest.raises(errors.CollectionNotFoundError, match="no Milvus Lite file"):
        run(MilvusBackend(str(path), "c"), lambda b: b.retrieve("water"))
    assert not path.exists()


def test_backends_of_one_address_share_a_connection(make: Make) -> None:
    filled(make, PUMP)

    async def steps() -> None:
        first, second = make(), make()
        await asyncio.gather(first.retrieve("water"), second.retrieve("water"))
        assert first._client is not None
        assert second._client is not None
        assert first._client._handler is second._client._handler
        await first.close()
        assert await second.retrieve("water")
        await second.close()

    asyncio.run(steps())


@contextmanager
def lite_server(folder: Path) -> Iterator[str]:
    """A server on TCP."""
    server, db, port = start_server_in_thread(data_dir=str(folder), host="127.0.0.1", port=0)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop(grace=0).wait()
        db.close()


def test_a_server_is_searched_like_a_file(tmp_path: Path) -> None:
    with lite_server(tmp_path / "data") as url:
        run(MilvusBackend(url, "c", **PATIENT), lambda b: b.create(integer_ids=True), lambda b: b.add([PUMP, LEASE]))
        backend = MilvusBackend(url, "c", token="root:Milvus", **PATIENT)

        found = run(backend, lambda b: b.retrieve("water pump", filters={"corpus": "manual"}))[0]

    assert ids(found) == ["1"]


def test_a_server_that_is_not_running_is_unavailable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"

        with pytest.raises(errors.ServiceUnavailableError, match="check that Milvus is running"):
            run(MilvusBackend(url, "c", timeout_seconds=30), lambda b: b.retrieve("water"))


def test_a_server_that_stops_is_unavailable_or_times_out(tmp_path: Path) -> None:
    async def steps(url: str, stop: Callable[[], Any]) -> None:
        async with MilvusBackend(url, "c", timeout_seconds=20) as backend:
            await backend.create()
            stop()
            with pytest.raises((errors.ServiceUnavailableError, errors.RetrievalTimeoutError)):
                await backend.retrieve("water")

    server, db, port = start_server_in_thread(data_dir=str(tmp_path / "data"), host="127.0.0.1", port=0)
    asyncio.run(steps(f"http://127.0.0.1:{port}", lambda: server.stop(grace=0).wait()))
    db.close()


def test_a_silent_server_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        start = time.perf_counter()

        with pytest.raises((errors.RetrievalTimeoutError, errors.ServiceUnavailableError)):
            run(MilvusBackend(url, "c", timeout_seconds=0.3), lambda b: b.retrieve("water"))
    assert time.perf_counter() - start < 60
