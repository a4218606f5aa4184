"""Filters inferred from a question, and the slice that searches them."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.core.errors import RetrievalError
from ragstack_common.filters import evaluate, parse, to_mongo
from ragstack_common.search import RetrievedChunk, SearchOutcome, SearchRequest
from ragstack_common.search.inference import Inferred, Vocabulary, VocabularySource
from ragstack_common.search.naming import QuestionTerms
from ragstack_common.search.wrappers.multislice import MultiSliceBackend
from tests.support.backends import Shelf
from tests.support.virtual_time import run_in_virtual_time

COUNTS: dict[str, dict[Any, int]] = {
    "company": {"Amcor": 40, "MGM Resorts": 30, "Boeing": 30},
    "year": {2021: 30, 2022: 40, 2023: 30},
    "topic": {"travel": 50, "finance": 50},
    "code": {"3.1": 50, "42": 50},
    "internal": {True: 50, False: 50},
    "title": {f"Report {number}": 1 for number in range(100)},
    "tags": {"Amcor": 90, "Boeing": 90},
    "x-amz-bedrock-kb-data-source-id": {"Amcor": 50, "Boeing": 50},
    "ragstack_section": {"Amcor": 50, "Boeing": 50},
}
FILINGS = Vocabulary(COUNTS, 100)


def inferred(question: str, vocabulary: Vocabulary = FILINGS, known: tuple[str, ...] = ()) -> Inferred | None:
    return vocabulary.infer(QuestionTerms(question), known)


@pytest.mark.parametrize(
    ("question", "filters"),
    [
        ("What did Amcor earn in FY2022?", {"company": "Amcor", "year": 2022}),
        ("What did Amcor earn from 2021 to 2023?", {"company": "Amcor", "year": 2023}),
        ("Which region earned most for MGM?", {"company": "MGM Resorts"}),
        ("Compare Amcor with Boeing", {"company": {"$in": ["Amcor", "Boeing"]}}),
        ("How did the year FY22 end?", {"year": 2022}),
        ("What does the Travel desk do?", {"topic": "travel"}),
    ],
)
def test_values_that_a_question_names_become_a_filter(question: str, filters: Any) -> None:
    found = inferred(question)

    assert found is not None
    assert to_mongo(found.filters) == to_mongo(parse(filters))


@pytest.mark.parametrize(
    "question",
    [
        "How do I book travel?",
        "Travel by train",
        "What happened in 2022?",
        "What changed since 2021?",
        "What does section 3.1 say about 42?",
        "Is it true?",
        "Where is report 17?",
        "Compare Amcor, Boeing, MGM Resorts and Block in 1999",
    ],
)
def test_common_words_codes_titles_and_years_imply_no_filter(question: str) -> None:
    one_more = Vocabulary({**COUNTS, "company": {**COUNTS["company"], "Block": 1}}, 101)

    assert inferred(question, one_more) is None


def test_words_count_once_for_the_value_that_they_name_completely() -> None:
    named_twice: dict[str, dict[Any, int]] = {
        "guide": {"amazon-forecast-guide": 50, "amazon-rds-guide": 50},
        "service": {"forecast": 50, "rd": 50},
    }

    found = inferred("Is Alias a reserved field name of Amazon Forecast?", Vocabulary(named_twice, 100))

    assert found is not None
    assert (found.values, found.names) == ({"service": ("forecast",)}, 1)


def test_an_attribute_of_the_callers_filter_counts_as_named() -> None:
    found = inferred("What did Amcor earn in FY2022?", known=("company",))

    assert found is not None
    assert (found.values, found.names) == ({"year": (2022,)}, 2)
    assert inferred("What did Amcor earn?", known=("company",)) is None


class Store(Shelf):
    """A shelf whose searches for Amcor fail if there is an error."""

    def __init__(self, chunks: list[RetrievedChunk], error: Exception | None = None) -> None:
        super().__init__(*chunks)
        self._failure = error

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        if self._failure is not None and "Amcor" in str(request.filters):
            raise self._failure
        return await super()._search(request)


def chunks(*attributes: dict[str, Any]) -> list[RetrievedChunk]:
    return [
        RetrievedChunk(content=str(n), score=1 - n / 1000, source=f"s{n}", chunk_id=str(n), metadata=each)
        for n, each in enumerate(attributes)
    ]


def known(vocabulary: Vocabulary | None = FILINGS) -> VocabularySource:
    async def source() -> Vocabulary | None:
        return vocabulary

    return source


def search(store: Store, request: SearchRequest, vocabulary: VocabularySource | None = None) -> SearchOutcome:
    return asyncio.run(MultiSliceBackend(store, vocabulary=vocabulary).search(request))


AMCOR, BOEING = {"company": "Amcor", "year": 2022}, {"company": "Boeing", "year": 2021}
MIXED = chunks(*[BOEING, {**AMCOR, "year": 2021}] * 6, AMCOR)
QUESTION = "What did Amcor earn in FY2022?"


@pytest.mark.parametrize("vocabulary", [known(), known(None), None], ids=["catalogue", "not read yet", "hits"])
def test_chunks_with_the_named_values_rank_first(vocabulary: VocabularySource | None) -> None:
    store = Store(MIXED)

    outcome = search(store, SearchRequest(QUESTION, 5, infer_filter=True), vocabulary)

    assert outcome.chunks[0].metadata == AMCOR
    assert len(store.requests) == 2
    assert outcome.inferred is not None
    assert to_mongo(outcome.inferred.filter) == to_mongo(parse(AMCOR))
    assert (outcome.inferred.trust, outcome.inferred.reason) == (0.7, "The question names company = Amcor, year = 2022")
    assert [(part.name, part.trust) for part in outcome.parts] == [("unfiltered", None), ("inferred", 0.7)]


def test_nothing_is_inferred_unless_the_request_allows_it() -> None:
    store = Store(MIXED)

    outcome = search(store, SearchRequest(QUESTION, 5), known())

    assert (len(store.requests), outcome.inferred) == (1, None)
    assert outcome.chunks == search(Store(MIXED), SearchRequest("earnings", 5, infer_filter=True), known()).chunks


def test_values_in_lists_are_keywords_and_not_trusted() -> None:
    outcome = search(Store(chunks(BOEING, {"company": ["Amcor", "Boeing"], "year": 2022})), INFER, known())

    assert outcome.inferred is not None
    assert (outcome.inferred.trust, outcome.chunks[0].metadata) == (0.0, BOEING)


INFER = SearchRequest(QUESTION, 10, infer_filter=True)


def test_an_inferred_slice_that_fails_is_only_reported() -> None:
    outcome = search(Store(MIXED, RuntimeError("no")), INFER, known())

    assert [(part.name, part.status) for part in outcome.parts] == [("unfiltered", "ok"), ("inferred", "failed")]
    assert (len(outcome.chunks), outcome.inferred) == (10, None)


def test_an_empty_inferred_slice_does_not_replace_a_failed_one() -> None:
    class Broken(Store):
        async def _search(self, request: SearchRequest) -> SearchOutcome:
            if request.filters is None:
                raise RetrievalError("no")
            return await super()._search(request)

    with pytest.raises(RetrievalError, match="no"):
        search(Broken(chunks(BOEING)), INFER, known())
    assert [chunk.metadata for chunk in search(Broken(MIXED), INFER, known()).chunks] == [AMCOR]


def test_an_inferred_filter_reveals_no_value_outside_the_scope() -> None:
    own, others = ({**attributes, "tenant": name} for attributes, name in ((BOEING, "own"), (AMCOR, "other")))

    outcome = search(Store(chunks(own, others)), replace(INFER, scope_filter={"tenant": "own"}), known())

    assert (outcome.inferred, [part.name for part in outcome.parts]) == (None, ["unfiltered"])


def test_a_vocabulary_that_hangs_leaves_time_for_the_search() -> None:
    async def never() -> Vocabulary:
        await asyncio.Event().wait()
        raise AssertionError

    outcome = run_in_virtual_time(MultiSliceBackend(Store(MIXED), vocabulary=never).search(INFER))

    assert outcome.inferred is not None
    assert outcome.complete


def test_the_inferred_slice_takes_weight_from_the_callers_filter() -> None:
    request = SearchRequest(QUESTION, 5, metadata_filter={"company": "Amcor"}, infer_filter=True)

    outcome = search(Store(MIXED), request, known())

    assert outcome.chunks[0].metadata == AMCOR
    assert [(part.name, part.trust) for part in outcome.parts] == [
        ("filtered", 0.98),
        ("unfiltered", None),
        ("inferred", 0.7),
    ]
    shares = outcome.chunks[0].ranked_by.contributions
    assert shares["inferred"] == pytest.approx(0.98 * 0.7)


def test_a_merge_by_trust_compares_min_score_with_the_engines_scores() -> None:
    outcome = search(Store(MIXED), SearchRequest(QUESTION, 20, min_score=0.995, infer_filter=True), known())

    assert {each.content for each in outcome.chunks} == {"0", "1", "2", "3", "4", "5"}


ATTRIBUTES = st.fixed_dictionaries(
    {},
    optional={
        "company": st.sampled_from(["Amcor", "MGM Resorts", "Boeing"]),
        "year": st.sampled_from([2021, 2022, 2023]),
        "tenant": st.sampled_from(["a", "b"]),
    },
)
QUESTIONS = st.lists(
    st.sampled_from(["Amcor", "MGM", "Boeing", "FY2022", "2021", "earnings", "of", "tenant"]), min_size=1, max_size=5
).map(" ".join)
SCOPES = st.sampled_from(
    [None, {"tenant": "a"}, {"company": {"$ne": "Amcor"}}, {"$or": [{"year": 2021}, {"tenant": "b"}]}]
)


@given(
    st.lists(ATTRIBUTES, max_size=30),
    QUESTIONS,
    SCOPES,
    st.sampled_from([None, {"company": "Amcor"}]),
    st.booleans(),
)
def test_an_inferred_filter_widens_no_scope_and_loses_no_result(
    attributes: list[dict[str, Any]], question: str, scope: Any, preferred: Any, by_hits: bool
) -> None:
    def found(*, infer: bool) -> set[str]:
        request = SearchRequest(
            question, 100, scope_filter=scope, metadata_filter=preferred, infer_filter=infer, deduplicate_by="document"
        )
        store = Store(chunks(*attributes))
        outcome = search(store, request, None if by_hits else known())
        assert all(each.scope_filter == request.scope_filter for each in store.requests)
        assert outcome.complete
        return {chunk.source for chunk in outcome.chunks}

    assert found(infer=True) == found(infer=False)
    visible = {each.source for each in chunks(*attributes) if scope is None or evaluate(parse(scope), each.metadata)}
    assert found(infer=True) == visible
