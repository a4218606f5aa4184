"""Whether a search may have found an answer, if no calibration says how relevant its results are."""

from typing import Final

from ragstack_common.search.models import SearchOutcome
from ragstack_common.text.words import detect_language, query_terms, terms

MIN_SHARE: Final = 0.35
"""Share of the question's words that a passage must have to be a possible answer, if there is no calibration.

On samples/judged it does for 66 of 69 questions, and for 25 of 30 that the handbook does not answer in its own words;
the shipped calibration says the same of 67 and 25. Source: HYBRID, ``hashed``.
"""


def shares_words(query: str, outcome: SearchOutcome) -> bool | None:
    """Return True if a passage has enough of the question's words; else None, because it may be in another language."""
    best = outcome.chunks[:10]  # comparing long texts takes time
    passages = [passage for chunk in best for passage in chunk.passages or [chunk]]
    language = detect_language(query, *(passage.content for passage in passages))
    question_terms = query_terms(query, language)
    found = (terms(f"{passage.context or ''} {passage.content}", language) for passage in passages)
    return any(len(question_terms.keys() & each) >= MIN_SHARE * max(1, len(question_terms)) for each in found) or None
