"""The engine chroma: rules that the contract does not test."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragstack_common.core.errors import (
    CollectionNotFoundError,
    ConfigurationError,
    DimensionMismatchError,
    EmbeddingError,
    InvalidFilterError,
    ServiceUnavailableError,
)
from ragstack_common.embedding import HashedEmbedding
from ragstack_common.search import RetrievalBackend, RetrievedChunk
from ragstack_common.text.words import detect_languages

chromadb = pytest.importorskip("chromadb")

from ragstack_common.search.engines.chroma import search  # noqa: E402 - after the extra is known to be there
from ragstack_common.search.engines.chroma.backend import ChromaBackend  # noqa: E402 - after the extra is known to be there
from tests.contract.cases.chroma import fill  # noqa: E402 - the same
from tests.contract.documents import DOCUMENTS  # noqa: E402 - the same
from tests.support.children import child  # noqa: E402 - the same

NAME = "handbook"
PUMP = "grease the bearings of the water pump"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with chromadb.PersistentClient(tmp_path) as client:
        fill(client, DOCUMENTS, name=NAME)
    return tmp_path


@pytest.fixture
def backend(folder: Path) -> Iterator[ChromaBackend]:
    made = ChromaBackend(folder, NAME)
    yield made
    asyncio.run(made.close())


def ask(backend: RetrievalBackend, query: str = PUMP, **options: Any) -> list[RetrievedChunk]:
    return asyncio.run(backend.retrieve(query, **options))


@contextmanager
def elsewhere(folder: Path) -> Iterator[Callable[[str], None]]:
    """Change the store in another process."""
    script = (
        "import chromadb, sys\n"
        "from ragstack_common.embedding import HashedEmbedding\n"
        "embed = HashedEmbedding().embed\n"
        f"client = chromadb.PersistentClient({str(folder)!r})\n"
        f"collection = client.get_collection({NAME!r}, embedding_function=None)\n"
        "for step in sys.stdin:\n"
        "    exec(step)\n"
        "    print('done', flush=True)\n"
    )
    with child([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        steps, answers = process.stdin, process.stdout

        def change(step: str) -> None:
            steps.write(f"{step}\n")
            steps.flush()
            assert answers.readline() == "done\n"

        yield change


def added(text: str) -> str:
    return f"collection.add(ids=['new'], documents=[{text!r}], embeddings=embed([{text!r}]))"


def test_the_next_search_sees_what_other_processes_add_and_delete(folder: Path) -> None:
    quokka = "The quokka sleeps next to the espresso machine."

    async def story() -> list[list[str]]:
        async with ChromaBackend(folder, NAME) as plain, ChromaBackend(folder, NAME, hybrid=True) as hybrid:

            async def first_of_both(top_k: int = 1) -> list[str]:
                found = [await backend.retrieve("quokka espresso", top_k) for backend in (plain, hybrid)]
                return [chunk.content for chunks in found for chunk in chunks]

            answers = [await first_of_both()]
            with elsewhere(folder) as change:
                change(added(quokka))
                answers.append(await first_of_both())
                change("collection.delete(ids=['new'])")
                answers.append(await first_of_both(12))
        return answers

    before, between, after = asyncio.run(story())

    assert between == [quokka, quokka]
    assert quokka not in before + after


def test_a_collection_that_is_created_again_is_searched(folder: Path) -> None:
    async def story() -> list[RetrievedChunk]:
        async with ChromaBackend(folder, NAME) as backend:
            await backend.retrieve(PUMP)
            with chromadb.PersistentClient(folder) as client:
                client.delete_collection(NAME)
                fill(client, DOCUMENTS[:2], name=NAME)
            return await backend.retrieve(PUMP)

    assert {chunk.chunk_id for chunk in asyncio.run(story())} == {"chunk-1", "chunk-2"}


def test_a_hybrid_search_finds_a_chunk_by_words_only(folder: Path) -> None:
    class Constant(HashedEmbedding):
        """Has one vector for every text."""

        def embed(self, texts: Any) -> Any:
            return np.eye(1, self.dimension, dtype=np.float32).repeat(len(texts), axis=0)

    with chromadb.PersistentClient(folder) as client:
        collection = client.get_collection(NAME, embedding_function=None)
        opposite = -np.eye(1, 1024, dtype=np.float32)
        fillers = [f"filler-{number}" for number in range(20)]
        collection.add(ids=fillers, documents=["filler"] * 20, embeddings=-opposite.repeat(20, axis=0))
        collection.add(ids=["far"], documents=["the zyzzyva"], embeddings=opposite)

    by_vectors = ask(ChromaBackend(folder, NAME, embedding=Constant(), timeout_seconds=60), "zyzzyva", top_k=10)
    chunks = ask(ChromaBackend(folder, NAME, embedding=Constant(), hybrid=True, timeout_seconds=60), "zyzzyva", top_k=1)

    assert "far" not in {chunk.chunk_id for chunk in by_vectors}
    assert chunks[0].chunk_id == "far"
    assert chunks[0].ranking is not None
    assert "words" in chunks[0].ranking.found_by


GERMAN = "Die Häuser sind alt, und der Garten ist nicht groß."
FRENCH = "Les maisons sont vieilles, et le jardin n'est pas grand."


def part(key: str, content: str, source: str) -> dict[str, str]:
    return {"id": key, "content": content, "source": source}


def test_only_changed_files_are_read_for_their_language(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[list[str]] = []

    def detect(texts: Sequence[str]) -> list[str]:
        read.append([*texts])
        return detect_languages(texts)

    async def story() -> None:
        async with ChromaBackend(folder, NAME, hybrid=True) as backend:
            await backend.retrieve(PUMP)
            monkeypatch.setattr(search, "detect_languages", detect)
            await backend.index([part("new", GERMAN, "new.txt")])
            await backend.retrieve(PUMP)

    asyncio.run(story())

    assert read == [[GERMAN]]


def test_an_index_that_followed_changes_is_as_a_new_one(folder: Path) -> None:
    async def story() -> tuple[list[RetrievedChunk], ...]:
        short = part("short", "Gärten 12, 30.", "two.txt")
        async with ChromaBackend(folder, NAME, hybrid=True) as followed:
            for texts in ([part("long", FRENCH * 3, "two.txt"), short], [part("long", GERMAN * 3, "two.txt")]):
                await followed.index(texts)
                changed = await followed.retrieve("Häusern und Garten", 20)
            async with ChromaBackend(folder, NAME, hybrid=True) as new:
                return changed, await new.retrieve("Häusern und Garten", 20)

    followed, new = asyncio.run(story())

    assert followed == new
    assert {"long", "short"} == {chunk.chunk_id for chunk in new if "words" in chunk.ranked_by.found_by}


def test_an_inexpressible_filter_is_refused_over_the_scan_limit(folder: Path) -> None:
    backend = ChromaBackend(folder, NAME, scan_limit=11)

    with pytest.raises(InvalidFilterError, match=r"startsWith\(corpus, 'hand'\).*12 chunks.*scan_limit is 11"):
        ask(backend, filters={"corpus": {"$startsWith": "hand"}})


def test_a_missing_collection_is_an_error_and_is_not_created(folder: Path) -> None:
    with pytest.raises(CollectionNotFoundError, match="absent"):
        ask(ChromaBackend(folder, "absent"))

    with chromadb.PersistentClient(folder) as client:
        assert [collection.name for collection in client.list_collections()] == [NAME]


def test_a_missing_folder_is_an_error_and_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(CollectionNotFoundError, match="no Chroma store"):
        ask(ChromaBackend(tmp_path / "absent", NAME))

    assert not (tmp_path / "absent").exists()


def test_a_damaged_store_is_an_error(folder: Path) -> None:
    (folder / "chroma.sqlite3").write_bytes(b"no database" * 1000)

    with pytest.raises(ServiceUnavailableError, match="not a database"):
        ask(ChromaBackend(folder, NAME))


def test_a_server_that_is_not_running_is_an_error_and_unhealthy() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        backend = ChromaBackend(host="127.0.0.1", port=free.getsockname()[1], collection_name=NAME)

    with pytest.raises(ServiceUnavailableError, match="is it running"):
        ask(backend)
    assert not asyncio.run(backend.health_check())


def test_another_embedding_than_the_recorded_one_is_an_error(folder: Path) -> None:
    class Other(HashedEmbedding):
        name = "other"

    with pytest.raises(EmbeddingError, match=r"made with the embedding hashed, not with other: .* build it again"):
        ask(ChromaBackend(folder, NAME, embedding=Other()))


def test_an_embedding_of_another_dimension_is_an_error(folder: Path) -> None:
    with pytest.raises(DimensionMismatchError, match="has 16 dimensions and the collection handbook 1024"):
        ask(ChromaBackend(folder, NAME, embedding=HashedEmbedding(16)))


class Letters(chromadb.EmbeddingFunction):  # type: ignore[name-defined,misc]
    """A third-party embedding function, registered with Chroma."""

    def __init__(self) -> None:
        """Nothing is needed."""

    def __call__(self, input: Any) -> Any:  # noqa: A002 - named by Chroma
        return [np.array([text.count(letter) for letter in "aeiou"], dtype=np.float32) for text in input]

    @staticmethod
    def name() -> str:
        return "letters"

    def get_config(self) -> dict[str, Any]:
        return {}

    @staticmethod
    def build_from_config(_config: dict[str, Any]) -> "Letters":
        return Letters()


def foreign(folder: Path, function: Any) -> None:
    with chromadb.PersistentClient(folder) as client:
        made = client.create_collection("foreign", embedding_function=function)
        vectors = {} if function else {"embeddings": [[1.0, 0.0], [0.0, 1.0]]}
        made.add(ids=["a", "u"], documents=["aaa", "uuu"], **vectors)


def test_a_foreign_collection_uses_the_function_that_it_stores(tmp_path: Path) -> None:
    chromadb.utils.embedding_functions.register_embedding_function(Letters)
    foreign(tmp_path, Letters())

    chunks = ask(ChromaBackend(tmp_path, "foreign"), "uu")

    assert [chunk.chunk_id for chunk in chunks] == ["u", "a"]
    assert chunks[0].source == "u"


def test_a_collection_without_a_recorded_embedding_needs_one(tmp_path: Path) -> None:
    foreign(tmp_path, None)

    with pytest.raises(ConfigurationError, match="does not record the embedding it was made with"):
        ask(ChromaBackend(tmp_path, "foreign"))
    assert ask(ChromaBackend(tmp_path, "foreign", embedding=HashedEmbedding(2)), "something")


def test_an_empty_collection_finds_nothing_and_is_healthy(tmp_path: Path) -> None:
    with chromadb.PersistentClient(tmp_path) as client:
        client.create_collection("empty", embedding_function=None)
    backend = ChromaBackend(tmp_path, "empty")

    assert ask(backend) == []
    assert asyncio.run(backend.health_check())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give either the path of a folder or the host"),
        ({"path": "x", "host": "y"}, "give either the path of a folder or the host"),
        ({"path": "x", "collection_name": ""}, "collection_name is missing"),
        ({"path": "x", "collection_name": "c", "scan_limit": -1}, "scan_limit"),
        ({"path": "x", "collection_name": "c", "timeout_seconds": 0}, "timeout_seconds"),
    ],
)
def test_invalid_arguments_are_errors(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ChromaBackend(**options)
