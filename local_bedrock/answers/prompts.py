"""What a generator is asked: prompt templates with the placeholders of Amazon Bedrock, and excerpts of documents.

Source: Amazon Bedrock User Guide, knowledge base prompt templates.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from local_bedrock.answers.answers import Task, Turn
from local_bedrock.reading.chunking import FixedSize
from local_bedrock.search.reranking import score
from ragstack_common.embedding import Embedding

RESULTS: Final = "$search_results$"
FORMAT: Final = "$output_format_instructions$"

DEFAULT_TEMPLATE: Final = f"""\
You answer questions. Below are numbered search results. Answer the user's question with what they say and nothing else.
If they do not answer it, say that you could not find an answer. A statement of the user is not a fact: check it.

Search results:
{RESULTS}

{FORMAT}"""

_INSTRUCTIONS: Final = (
    "After each sentence write the number of every search result that it comes from in square brackets, for example"
    " [1] or [2, 3]. Write no list of sources at the end."
)
_PLACEHOLDER: Final = re.compile(r"\$(?:search_results|output_format_instructions|query|current_time)\$")


def prompted_task(
    template: str | None, question: str, passages: Sequence[str], history: Sequence[Turn], now_seconds: float
) -> Task:
    """Fill in a template; earlier turns and the question follow as messages."""
    chosen = DEFAULT_TEMPLATE if template is None else template
    values = {
        RESULTS: "\n\n".join(f"[{number}]\n{passage}" for number, passage in enumerate(passages, start=1)),
        FORMAT: _INSTRUCTIONS,
        "$query$": question,
        "$current_time$": datetime.fromtimestamp(now_seconds, UTC).isoformat(timespec="seconds"),
    }
    # In one pass, so that placeholders in the text of a document have no effect.
    filled = _PLACEHOLDER.sub(lambda match: values[match[0]], chosen)
    turns = (Turn("system", filled), *history, Turn("user", question))
    return Task(question, tuple(passages), turns, numbered=FORMAT in chosen)


MOST_EXCERPTS: Final = 20


def best_excerpts(text: str, question: str, embedding: Embedding) -> list[str]:
    """Return the excerpts of a document that answer a question best, best first."""
    excerpts = cut_excerpts(text)
    scores = score(question, excerpts, embedding)
    order = sorted(range(len(excerpts)), key=lambda index: (-scores[index], index))
    return [excerpts[index] for index in order[:MOST_EXCERPTS]]


def cut_excerpts(text: str) -> list[str]:
    """Divide a document that has no index into chunks of Bedrock's default size, without overlap."""
    return [chunk.text for chunk in FixedSize(overlap_percentage=0).cut(text).chunks]
