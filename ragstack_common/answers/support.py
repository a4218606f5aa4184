"""Judge, after an answer, whether the cited passages say what each sentence says."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Final

from ragstack_common.answers.answer import Sentence, Verdict
from ragstack_common.answers.models.protocol import ModelProvider, NumberedPassage, text_up_to
from ragstack_common.answers.prompt import support_request
from ragstack_common.core.deadline import inner_deadline, seconds_left
from ragstack_common.core.errors import GenerationError

SUPPORT_SECONDS: Final = 30.0
MAX_SENTENCES: Final = 40
"""Sentences that are judged; the verdict on further ones is unknown."""

_VERDICT: Final = re.compile(
    r"^\W*(\d{1,3})\W+(not supported|unsupported|partly|partially|supported)\b", re.IGNORECASE | re.MULTILINE
)
_VERDICTS: Final[Mapping[str, Verdict]] = {
    "supported": "supported",
    "partly": "partly",
    "partially": "partly",
    "unsupported": "not supported",
    "not supported": "not supported",
}


async def judged(
    sentences: Sequence[Sentence], passages: Sequence[NumberedPassage], judge: ModelProvider, seconds: float
) -> tuple[dict[int, Verdict], str | None]:
    """Judge, in one call, the sentences that cite passages; *seconds* is the time until the deadline of the answer.

    Returns:
        The verdicts by the index of the sentence; and a remark if the model failed.
    """
    cited = [(index, sentence) for index, sentence in enumerate(sentences) if sentence.citations]
    if not cited:
        return {}, None
    verdicts: dict[int, Verdict] = {index: "unknown" for index, _ in cited}
    chosen = cited[:MAX_SENTENCES]
    limit = max(0.0, min(SUPPORT_SECONDS, seconds_left(seconds)))
    try:
        with inner_deadline(limit):
            async with asyncio.timeout(limit):
                asked = [(sentence.text, sentence.citations) for _, sentence in chosen]
                found = await _verdicts(judge, asked, passages)
    except (GenerationError, TimeoutError) as error:
        return verdicts, f"The model did not check the sentences: {str(error) or 'there was no time left'}"
    return verdicts | {
        chosen[place][0]: verdict for place, verdict in found.items() if place in range(len(chosen))
    }, None


async def _verdicts(
    judge: ModelProvider, sentences: Sequence[tuple[str, Sequence[int]]], passages: Sequence[NumberedPassage]
) -> Mapping[int, Verdict]:
    """Return the verdicts of the lines that the model writes, without sentences that have two."""
    text = await text_up_to(10_000, judge.stream(support_request(sentences, passages)))
    found: dict[int, set[Verdict]] = {}
    for number, word in _VERDICT.findall(text):
        found.setdefault(int(number) - 1, set()).add(_VERDICTS[word.lower()])
    return {place: verdicts.pop() for place, verdicts in found.items() if len(verdicts) == 1}
