"""Ask the model, after its answer, whether the cited passages say what each sentence says."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Final

from ragstack_common.answers.answer import Sentence, Verdict
from ragstack_common.answers.models import ModelProvider, ModelText, Passage
from ragstack_common.answers.prompt import support_request
from ragstack_common.core.deadline import inner_deadline, seconds_left
from ragstack_common.core.errors import GenerationError

SUPPORT_SECONDS: Final = 30.0
MAX_SENTENCES: Final = 40
"""Sentences that are judged; those after them are unknown."""

MAX_JUDGEMENT: Final = 10_000
"""Characters of the model's judgement."""

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
    sentences: Sequence[Sentence], passages: Sequence[Passage], provider: ModelProvider, seconds: float
) -> tuple[dict[int, Verdict], str | None]:
    """Judge the sentences that cite passages, in one call.

    A sentence that the model does not mention, or mentions with two verdicts, is unknown.

    Args:
        sentences: Those of the answer.
        passages: What the answerer received.
        provider: The model; one that quotes is not asked, because quotations are verified.
        seconds: Time until the deadline of the answer.

    Returns:
        The verdicts by the index of the sentence; and a remark about what failed, if anything did.
    """
    cited = [(index, sentence) for index, sentence in enumerate(sentences) if sentence.citations]
    if not cited or provider.quotes:
        return {}, None
    unknown: dict[int, Verdict] = {index: "unknown" for index, _ in cited}
    chosen = cited[:MAX_SENTENCES]
    request = support_request([(sentence.text, sentence.citations) for _, sentence in chosen], passages)
    limit = max(0.0, min(SUPPORT_SECONDS, seconds_left(seconds)))
    said = ""
    try:
        with inner_deadline(limit):
            async with asyncio.timeout(limit), aclosing(provider.stream(request)) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    said += piece.text if isinstance(piece, ModelText) else ""
                    if len(said) > MAX_JUDGEMENT:
                        break
    except (GenerationError, TimeoutError) as error:
        return unknown, f"The model did not check the sentences: {str(error) or 'there was no time left'}"
    found: dict[int, set[Verdict]] = {}
    for number, word in _VERDICT.findall(said):
        found.setdefault(int(number), set()).add(_VERDICTS[word.lower()])
    for number, (index, _) in enumerate(chosen, start=1):
        if len(verdicts := found.get(number, set())) == 1:
            unknown[index] = verdicts.pop()
    return unknown, None
