"""Generate answers without a model, by quoting the sentences that answer best, with their sources."""

from collections.abc import Iterator
from typing import Final

from local_bedrock.answers.answers import Given, Settings, Sources, Task, Text, limited
from ragstack_common.answers.extractive import quoted_answer
from ragstack_common.answers.quoting import best_quotations
from ragstack_common.config import QUOTING_GENERATOR

NO_ANSWER: Final = "Sorry, I am unable to assist you with this request."
"""Amazon Bedrock's answer if the search results contain none."""


class ExtractiveGenerator:
    """Quotes the passages."""

    name = QUOTING_GENERATOR
    description = "answers quote the documents (no model; --llm-url forwards to one)"

    def generate(self, task: Task, settings: Settings) -> Iterator[Given]:
        """Yield the best quotes, each with its passages, or that there is no answer."""
        yield from limited(self._quoted(task), task, settings)

    def _quoted(self, task: Task) -> Iterator[Text | Sources]:
        quotations = best_quotations(task.question, task.passages, task.contexts)
        if task.numbers:
            yield Text(quoted_answer(quotations, task.numbers))
            return
        for quotation in quotations:
            yield Text(quotation.space + quotation.whole)
            yield Sources(quotation.passages)
        if not quotations:
            yield Text(NO_ANSWER)
