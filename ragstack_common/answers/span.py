"""The span of an answer, if the process has a tracer provider of OpenTelemetry.

It has attributes of OpenInference's conventions, which Phoenix displays, and of OpenTelemetry's for generative models.
Questions and answers are hidden unless the settings allow them.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from ragstack_common.answers.answer import Answer
from ragstack_common.search.tracing import finished, parent, shown_input, shown_output, started

_SYSTEMS: Final = {"bedrock": "aws.bedrock"}
"""Source: OpenTelemetry, semantic conventions of generative AI, gen_ai.provider.name."""


class AnswerSpan:
    """The span of one answer, which stays open while the answer is streamed.

    Between two pieces it is not the current span: the consumer of the stream runs then.
    """

    def __init__(self, span: Any) -> None:
        self._span = span

    @contextmanager
    def parent(self) -> Iterator[None]:
        """Make it the parent of the spans in a block that yields nothing to a consumer."""
        with parent(self._span):
            yield

    def ended(self, answer: Answer) -> None:
        """Add the answer's attributes, and end the span."""
        if self._span is None:
            return
        usage, answerer = answer.usage, answer.answerer
        attributes = {
            "openinference.span.kind": "CHAIN" if answerer.model is None else "LLM",
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": _SYSTEMS.get(answerer.provider, answerer.provider),
            "gen_ai.response.model": answerer.model,
            "llm.model_name": answerer.model,
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "llm.token_count.prompt": usage.input_tokens,
            "llm.token_count.completion": usage.output_tokens,
            "llm.token_count.total": usage.input_tokens + usage.output_tokens,
            "usage_estimated": usage.estimated,
            "answered": answer.answered,
            "quotes": answerer.quotes,
            "sources": len(answer.sources),
            "cited": sum(source.cited for source in answer.sources),
            "removed_citations": answer.removed_citations,
            "unsupported": sum(sentence.unsupported for sentence in answer.sentences),
            "complete": answer.complete,
            "cut_off": answer.cut_off,
            "retrieval_ms": answer.timings.retrieval_ms,
            "first_token_ms": answer.timings.first_token_ms,
            "output.value": shown_output(answer.answer),
        }
        self._span.set_attributes({name: value for name, value in attributes.items() if value is not None})
        if answer.stop_reason is not None:
            self._span.set_attribute("gen_ai.response.finish_reasons", [answer.stop_reason])
        self._span.end()


@contextmanager
def answer_span(question: str) -> Iterator[AnswerSpan]:
    """Open the span of an answer. An error is recorded; a stream that its consumer closed is ``cancelled``."""
    span = started("answer", {"openinference.span.kind": "CHAIN", "input.value": shown_input(question)})
    try:
        yield AnswerSpan(span)
    except BaseException as error:
        is_cancelled = isinstance(error, GeneratorExit | asyncio.CancelledError)
        finished(span, None if is_cancelled else error, cancelled=is_cancelled)
        raise
    finished(span)
