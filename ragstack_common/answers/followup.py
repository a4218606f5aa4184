"""Make a follow-up question self-contained before it is searched, such as "And in Germany?"."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

from ragstack_common.answers.models import ModelMessage, ModelProvider, ModelText
from ragstack_common.answers.prompt import last_turns, rewriting_request
from ragstack_common.answers.questions import Question
from ragstack_common.core.deadline import inner_deadline, seconds_left
from ragstack_common.core.errors import GenerationError
from ragstack_common.text.words import terms, words

REWRITE_SECONDS: Final = 10.0
"""Time of the model for a rewritten question."""

HISTORY_TOKENS: Final = 1_000
LONGEST_QUESTION: Final = 1_000
"""Characters of a rewritten question; a longer one is not a question."""

MAX_OWN_WORDS: Final = 2
"""A question with more words about its subject is searched as it is, if there is no model."""


async def self_contained(
    question: str, history: Sequence[ModelMessage], provider: ModelProvider, seconds: float
) -> tuple[str | None, str | None]:
    """Rewrite a question by the model; without one, or if it fails, add the subject of the question before.

    Args:
        question: The question.
        history: The conversation before it, oldest first.
        provider: The model; one that quotes is not asked.
        seconds: Time until the deadline of the answer.

    Returns:
        The question to search, None if it stays as it is; and a remark about what failed, if anything did.
    """
    if not history:
        return None, None
    remark = None
    if not provider.quotes:
        try:
            return await _by_model(question, history, provider, seconds), None
        except (GenerationError, TimeoutError) as error:
            remark = f"The model did not rewrite the question ({str(error) or 'it took too long'}): its words were used"
    return with_subject(question, history), remark


async def _by_model(
    question: str, history: Sequence[ModelMessage], provider: ModelProvider, seconds: float
) -> str | None:
    request = rewriting_request(question, last_turns(history, HISTORY_TOKENS))
    limit = max(0.0, min(REWRITE_SECONDS, seconds_left(seconds) / 2))
    said = ""
    with inner_deadline(limit):
        async with asyncio.timeout(limit), aclosing(provider.stream(request)) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                said += piece.text if isinstance(piece, ModelText) else ""
                if len(said) > LONGEST_QUESTION:
                    return None
    line = next((line.strip() for line in said.splitlines() if line.strip()), "").strip('"“”«» ')
    return line if line and line != question.strip() else None


def with_subject(question: str, history: Sequence[ModelMessage]) -> str | None:
    """Add the words of the question before that this one lacks; None if it has a subject of its own.

    A number in this one replaces those before: "And in version 1?" is not about version 2.
    """
    before = next((turn.content for turn in reversed(history) if turn.role == "user"), "")
    own, asked = Question.of(question), Question.of(before)
    if not asked.words or len(own.words) > MAX_OWN_WORDS:
        return None
    has_number = any(word[0].isdecimal() for word in words(question))
    kept = []
    for word in words(before):
        if has_number and word[0].isdecimal():
            continue
        (term, *_) = terms([word], asked.language)
        if term in asked.words and term not in own.words and word not in kept:
            kept.append(word)
    return f"{question.strip()} {' '.join(kept)}" if kept else None
