"""Why a question may have no answer, and what the caller can do."""

from collections.abc import Iterator
from typing import Final

from ragstack_common.answers.followup import is_follow_up
from ragstack_common.search import SearchOutcome
from ragstack_common.search.models import Note
from ragstack_common.text.languages import ENGLISH, STOP_WORDS, language_name
from ragstack_common.text.words import detect_language, words

LEAST_STOP_WORDS: Final = 2
"""Stop words of a language in a question whose language counts as known; names and codes have none."""

NO_SUBJECT: Final = "The question names no subject: name it, or send the conversation before it as `chat_history`"


def unanswerable_notes(question: str, outcome: SearchOutcome) -> list[Note]:
    """Return remarks about a question without an answer, as it was searched."""
    return [*_about_subject(question), *_about_language(question, outcome)]


def _about_subject(question: str) -> Iterator[Note]:
    if is_follow_up(question):
        yield Note("question", NO_SUBJECT)


def _about_language(question: str, outcome: SearchOutcome) -> Iterator[Note]:
    """Compare the language of the question with those of the documents that were found."""
    language = detect_language(question)
    stop_words = STOP_WORDS.get(language, frozenset())
    is_known = sum(word in stop_words for word in words(question)) >= LEAST_STOP_WORDS
    found = sorted({detect_language(chunk.content) for chunk in outcome.chunks})
    if found and language not in found and (is_known or _has_script_of_its_own(question, language)):
        names = " or ".join(map(language_name, found))
        asked = language_name(language)
        yield Note("language", f"The question is in {asked}, and the documents found are in {names}: ask in {names}")


def _has_script_of_its_own(question: str, language: str) -> bool:
    return language != ENGLISH and any(word >= "\u0370" for word in words(question))
