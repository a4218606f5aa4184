"""The same comparison on a local Bedrock: exact for vectors, and for words too if it knows the attribute of labels.

Without it, as with OpenSearch on AWS, word statistics are those of all documents, and the difference is bounded.
"""

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from local_bedrock.creation import create_knowledge_base, create_vector_index
from ragstack_common.embedding import HashedEmbedding
from ragstack_common.search import RetrievedChunk, SearchRequest
from ragstack_common.search.engines.bedrock import BedrockEngine
from ragstack_common.settings.names import MANAGED, OPENSEARCH_SERVERLESS, S3_VECTORS
from tests.local_bedrock.support import Bedrock, Source, client, serving
from tests.support.soak import SOAK

VISIBLE: Final = 60
HIDDEN: Final = 240 if SOAK else 80
QUESTIONS: Final = 400 if SOAK else 4
TOP_K: Final = 10

PROBE: Final = "word1 zebra"
"""Only a hidden document has the second word."""


@dataclass(frozen=True)
class Pair:
    """Two knowledge bases with the same visible documents, one of them with hidden ones too."""

    bedrock: Bedrock
    with_hidden: str
    without: str
    store: str = OPENSEARCH_SERVERLESS


def texts(number: int, seed: int) -> list[str]:
    """Return texts whose words are distributed as in natural language."""
    drawn = random.Random(seed)
    words = [f"word{rank}" for rank in range(400)]
    weights = [1 / (rank + 1) for rank in range(400)]
    return [" ".join(drawn.choices(words, weights, k=drawn.randint(10, 60))) for _ in range(number)]


def document(identifier: str, text: str, label: str) -> dict[str, Any]:
    values = {"access": label, "part": "odd" if int(identifier[1:]) % 2 else "even"}
    attributes = [{"key": key, "value": {"type": "STRING", "stringValue": value}} for key, value in values.items()]
    return {
        "content": {
            "dataSourceType": "CUSTOM",
            "custom": {
                "customDocumentIdentifier": {"id": identifier},
                "sourceType": "IN_LINE",
                "inlineContent": {"type": "TEXT", "textContent": {"data": text}},
            },
        },
        "metadata": {"type": "IN_LINE_ATTRIBUTE", "inlineAttributes": attributes},
    }


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """As the local stack starts a local Bedrock if there is an access file."""
    with made(tmp_path_factory.mktemp("bedrock"), scope_attribute="access") as pair:
        yield pair


@pytest.fixture(scope="module")
def unscoped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with made(tmp_path_factory.mktemp("bedrock")) as pair:
        yield pair


@pytest.fixture(scope="module")
def index_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """On S3 Vectors, where words are found in the index."""
    with made(tmp_path_factory.mktemp("bedrock"), S3_VECTORS, scope_attribute="access") as pair:
        yield pair


@pytest.fixture(scope="module")
def unscoped_index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with made(tmp_path_factory.mktemp("bedrock"), S3_VECTORS) as pair:
        yield pair


@pytest.fixture(scope="module")
def managed_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with made(tmp_path_factory.mktemp("bedrock"), MANAGED, scope_attribute="access") as pair:
        yield pair


@contextmanager
def made(folder: Path, store: str = OPENSEARCH_SERVERLESS, **options: Any) -> Iterator[Pair]:
    visible = [document(f"v{n}", text, "mine") for n, text in enumerate(texts(VISIBLE, 1))]
    hidden = [document(f"h{n}", text, "theirs") for n, text in enumerate([*texts(HIDDEN - 1, 2), "zebra " * 9])]
    with serving(folder, **options) as bedrock:
        bases = []
        for name, documents in (("with", visible + hidden), ("without", visible)):
            source = _source(bedrock, store, name)
            for start in range(0, len(documents), 10):
                found = source.ingested(*documents[start : start + 10])
                assert {each["status"] for each in found} == {"INDEXED"}
            bases.append(source.knowledge_base_id)
        with_hidden, without = bases
        yield Pair(bedrock, with_hidden, without, store)


def _source(bedrock: Bedrock, store: str, name: str) -> Source:
    if store == MANAGED:
        return bedrock.connector(bedrock.managed_base(name), "CUSTOM")
    index = create_vector_index(client("s3vectors", bedrock.url), name) if store == S3_VECTORS else None
    return bedrock.custom_source(create_knowledge_base(bedrock.agent, name, index))


def found(
    pair: Pair, knowledge_base: str, search_type: str, question: str, top_k: int = TOP_K, filters: Any = None
) -> list[RetrievedChunk]:
    options: dict[str, Any] = {"vector_store": pair.store}
    if pair.store == S3_VECTORS:
        options |= {"index_client": client("s3vectors", pair.bedrock.url), "agent_client": pair.bedrock.agent}
    if pair.store != MANAGED:
        options["search_type"] = search_type
    engine = BedrockEngine(knowledge_base, client=pair.bedrock.runtime, **options)
    request = SearchRequest(question, top_k, scope_filter={"access": {"$in": ["mine", "none"]}}, filters=filters)
    outcome = asyncio.run(engine.search(request))
    assert outcome.complete
    assert not outcome.notes
    return outcome.chunks


def questions() -> Sequence[str]:
    drawn = random.Random(3)
    return [" ".join(text.split()[: drawn.randint(1, 6)]) for text in texts(QUESTIONS, 4)]


@pytest.mark.parametrize(
    ("store", "search_type"),
    [*product(["pair", "index_pair"], ["SEMANTIC", "HYBRID"]), ("managed_pair", "HYBRID")],
)
@pytest.mark.parametrize("filters", [None, {"part": {"$eq": "odd"}}, {"$or": [{"access": "mine"}, {"part": "even"}]}])
def test_hidden_documents_change_no_hit_and_no_score(
    store: str, search_type: str, filters: Any, request: pytest.FixtureRequest
) -> None:
    pair: Pair = request.getfixturevalue(store)
    for question in [*questions(), PROBE, "zebra"]:
        first, second = (
            [
                (each.source, each.content, each.score, each.relevance, each.ranked_by.signals)
                for each in found(pair, base, search_type, question, VISIBLE, filters)
            ]
            for base in (pair.with_hidden, pair.without)
        )
        assert first == second, question


@pytest.mark.parametrize("store", ["pair", "index_pair"])
def test_a_filter_changes_no_score_of_a_caller_with_labels(store: str, request: pytest.FixtureRequest) -> None:
    """A filter of the question isn't a part of the scope: a wrong one must not lift what it admits.

    The reranker of a managed search scores what the filter leaves.
    """
    pair: Pair = request.getfixturevalue(store)
    for question in questions():
        everything = found(pair, pair.with_hidden, "HYBRID", question, VISIBLE)
        odd = found(pair, pair.with_hidden, "HYBRID", question, VISIBLE, {"part": {"$eq": "odd"}})

        scores = {each.source: each.score for each in everything}
        assert {each.source: each.score for each in odd} == {
            source: score for source, score in scores.items() if int(source[1:]) % 2
        }


@pytest.mark.parametrize("store", ["unscoped", "unscoped_index"])
def test_words_are_bounded_where_the_scope_is_unknown(
    store: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """BM25 counts in how many of all documents a word is, and the best score of all documents scales the others.

    So hidden documents can change the scores and the order of visible ones, by the share of BM25 in the score at most,
    and a question with a word that only hidden documents have shows it. They never change which documents are found if
    fewer than *top_k* match.
    """
    pair: Pair = request.getfixturevalue(store)
    differences, displacements, overlaps, changed = [0.0], [0], [], 0
    for question in questions():
        first, second = (found(pair, base, "HYBRID", question) for base in (pair.with_hidden, pair.without))
        assert all(each.metadata["access"] == "mine" for each in first)
        scores = {each.source: each.score for each in second}
        ranks = {each.source: rank for rank, each in enumerate(second)}
        differences += [abs(each.score - scores[each.source]) for each in first if each.source in scores]
        displacements += [abs(rank - ranks[each.source]) for rank, each in enumerate(first) if each.source in ranks]
        overlaps.append(len(scores.keys() & {each.source for each in first}) / TOP_K)
        changed += [each.source for each in first] != [each.source for each in second]
        everything = [
            {each.source for each in found(pair, base, "HYBRID", question, 100)}
            for base in (pair.with_hidden, pair.without)
        ]
        assert everything[0] == everything[1]
        assert len(everything[0]) == VISIBLE
    probed = [found(pair, base, "HYBRID", PROBE)[0].score for base in (pair.with_hidden, pair.without)]
    with capsys.disabled():
        print(  # noqa: T201 - the figures of the documentation
            f"\n{store}: {QUESTIONS} questions, {VISIBLE} visible and {HIDDEN} hidden documents, top {TOP_K}: order"
            f" changed in {changed}, overlap {min(overlaps):.0%} at least and {sum(overlaps) / len(overlaps):.1%} on"
            f" average, scores differ by {max(differences):.4f} at most, ranks by {max(displacements)}; the best score"
            f" for a word of a hidden document is {probed[0]:.4f} in the place of {probed[1]:.4f}"
        )
    assert max(differences) <= 1 - HashedEmbedding().cosine_share
