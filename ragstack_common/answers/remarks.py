"""Why a question may have no answer, and what the caller can do."""

from collections.abc import Iterable, Iterator
from typing import Final

from ragstack_common.answers.followup import names_no_subject
from ragstack_common.search import SearchOutcome
from ragstack_common.search.models import Note
from ragstack_common.text.languages import ENGLISH, STOP_WORDS, language_name
from ragstack_common.text.words import detect_language, words

MIN_STOP_WORDS: Final = 2
"""Stop words that make the language of a question certain; names and codes have none."""


def unanswerable_notes(question: str, outcome: SearchOutcome) -> Iterator[Note]:
    """Yield remarks about a question without an answer, as it was searched."""
    if names_no_subject(question):
        yield Note("question", "The question names no subject: name it, or send the conversation as `chat_history`")
    language = detect_language(question)
    found = sorted({detect_language(chunk.content) for chunk in outcome.chunks})
    if found and language not in found and _is_certain(question, language, found):
        own, names = language_name(language), " or ".join(map(language_name, found))
        yield Note("language", f"The question is in {own}, and the documents found are in {names}: ask in {names}")


def _is_certain(question: str, language: str, others: Iterable[str]) -> bool:
    """Whether a question is in a language and in none of the others: "Who wrote" before names in another language."""
    asked = words(question)
    counts = {tag: sum(word in STOP_WORDS.get(tag, ()) for word in asked) for tag in (language, *others)}
    if language != ENGLISH and any(word >= "\u0370" for word in asked):
        return True
    own = counts.pop(language)
    return own >= MIN_STOP_WORDS and own > max(counts.values())
