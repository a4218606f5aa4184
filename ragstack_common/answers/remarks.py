"""Why a question may have no answer, and what the caller can do."""

from collections.abc import Iterator
from typing import Final

from ragstack_common.answers.followup import is_follow_up
from ragstack_common.search import SearchOutcome
from ragstack_common.search.models import Note
from ragstack_common.text.languages import ENGLISH, STOP_WORDS, language_name
from ragstack_common.text.words import detect_language, words

MIN_STOP_WORDS: Final = 2
"""Stop words that make the language of a question certain; names and codes have none."""


def unanswerable_notes(question: str, outcome: SearchOutcome) -> Iterator[Note]:
    """Yield remarks about a question without an answer, as it was searched."""
    if is_follow_up(question):
        yield Note("question", "The question names no subject: name it, or send the conversation as `chat_history`")
    language = detect_language(question)
    asked, stop_words = words(question), STOP_WORDS.get(language, frozenset())
    has_other_script = language != ENGLISH and any(word >= "\u0370" for word in asked)
    is_certain = has_other_script or sum(word in stop_words for word in asked) >= MIN_STOP_WORDS
    found = sorted({detect_language(chunk.content) for chunk in outcome.chunks})
    if found and language not in found and is_certain:
        own, names = language_name(language), " or ".join(map(language_name, found))
        yield Note("language", f"The question is in {own}, and the documents found are in {names}: ask in {names}")
