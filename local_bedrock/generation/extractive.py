"""Generate answers without a model, by quoting the sentences that answer best, with their sources."""

from collections.abc import Iterator
from typing import Final

from local_bedrock.generation.answers import Given, Settings, Sources, Task, Text, limited
from ragstack_common.answering.quoting import Quoter
from ragstack_common.config import QUOTING_GENERATOR
from ragstack_common.embedding import Embedding, EmbeddingError
from ragstack_common.errors import GenerationError

NO_ANSWER: Final = "Sorry, I am unable to assist you with this request."
"""Amazon Bedrock's answer if the search results contain none."""


class ExtractiveGenerator:
    """Quotes the passages."""

    name = QUOTING_GENERATOR
    description = "answers quote the documents (no model; --llm-url forwards to one)"

    def __init__(self, embedding: Embedding) -> None:
        self._quoter = Quoter(embedding)

    def generate(self, task: Task, settings: Settings) -> Iterator[Given]:
        """Yield the best quotes, each with its passages, or that there is no answer.

        Raises:
            GenerationError: The embedding failed.
        """
        try:
            yield from limited(self._quoted(task), task, settings)
        except EmbeddingError as error:
            raise GenerationError(str(error)) from error

    def _quoted(self, task: Task) -> Iterator[Text | Sources]:
        quotations = self._quoter.quote(task.question, task.passages)
        for quotation in quotations:
            yield Text(quotation.space + quotation.text)
            yield Sources(quotation.passages)
        if not quotations:
            yield Text(NO_ANSWER)
