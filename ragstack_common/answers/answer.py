"""An answer, its sources, and the events in which a stream delivers it. They are also the JSON of the API."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ragstack_common.answers.models.protocol import StopReason
from ragstack_common.search.models import Note
from ragstack_common.text.positions import Position


class _FrozenModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Characters(_FrozenModel):
    """Characters of a source."""

    start: int = Field(description="Offset of the first character in the source's content, from 0")
    end: int = Field(description="Offset after the last character")


class CitedText(Characters):
    """Characters of a source that the answer quotes."""

    context: Characters | None = Field(
        default=None,
        description="These characters with the sentences before and after them, or, in a row, list item or value, with"
        " what is between them and their heading; null for code, or far below the heading",
    )


class Source(Position):
    """A numbered passage that the answerer received. Its position is that of the quoted words, if there are any."""

    model_config = ConfigDict(extra="forbid")

    number: int = Field(description="The number in citation markers, from 1")
    content: str = Field(description="The passage as the answerer received it")
    source: str | None = Field(description="The document's S3 URI, URL or identifier")
    location: dict[str, Any] = Field(default_factory=dict)
    context: str | None = Field(default=None, description="The document's title and the headings above the passage")
    metadata: dict[str, Any] = Field(default_factory=dict)
    score: float
    relevance: float | None = None
    cited: bool = Field(default=False, description="Whether the answer cites it")
    quoted: list[CitedText] = Field(default_factory=list, description="What the answer quotes from it verbatim")
    picture: str | None = Field(
        default=None,
        description="Path and query of GET /api/view, which shows the part of the page around the quoted words, or,"
        " without any, around the sentence that has most words of the question; null for documents without pages, and"
        " if the answer does not cite it",
    )


class Quotation(_FrozenModel):
    """A quotation in the answer."""

    text: str
    source: int | None = Field(description="The number of the source that contains it verbatim; null if none does")


Verdict = Literal["supported", "partly", "not supported", "unknown"]


class Sentence(_FrozenModel):
    """A sentence of the answer."""

    start: int = Field(description="Offset of its first character in the answer, from 0")
    end: int = Field(description="Offset after its last character, its citation markers included")
    text: str = Field(description="The sentence without citation markers")
    citations: list[int] = Field(description="Numbers of the sources that it cites")
    unsupported: bool = Field(description="True if it cites no source, or quotes what no source contains")
    quotations: list[Quotation] = Field(default_factory=list)
    support: Verdict | None = Field(
        default=None,
        description="The model's own judgement whether the cited passages say it; unknown if it gave none. Null if the"
        " request has no `check_support`, or the sentence cites nothing",
    )


class Conflict(_FrozenModel):
    """One of the figures in which documents contradict each other."""

    figure: str = Field(description="As the documents write it", examples=["twenty weeks"])
    citations: list[int] = Field(description="Numbers of the sources that state it")


class Usage(_FrozenModel):
    """Tokens of the model call."""

    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = Field(default=False, description="Whether these are estimates")


class Timings(_FrozenModel):
    """Milliseconds since the request."""

    retrieval_ms: float
    first_token_ms: float | None = Field(default=None, description="Null if no text was generated")
    total_ms: float


class Answerer(_FrozenModel):
    """Who wrote the answer."""

    provider: str = Field(
        description="bedrock; extractive, which quotes without a model; none, as nothing relevant was found"
        "; or the name of another provider",
        examples=["bedrock", "extractive", "none"],
    )
    model: str | None = None
    quotes: bool = Field(default=False, description="Whether the answer consists of quotations from the documents")


class Answer(_FrozenModel):
    """An answer with its sources."""

    question: str
    searched_question: str | None = Field(
        default=None, description="The question that was searched, if the request had it rewritten and it changed"
    )
    answer: str = Field(description="The text, with citation markers such as [1]")
    answered: bool = Field(
        description="False if nothing relevant was found, the answerer found no answer in it, or no source is cited"
    )
    closest_passages: bool = Field(
        default=False,
        description="Whether the text quotes the passages that are closest to the question, which may not answer it:"
        " `answered` is false then",
    )
    confidence: float | None = Field(
        default=None,
        description="Calibrated probability, 0 to 1, that the quotations answer the question. Null with a model, or"
        " without passages",
    )
    conflicts: list[Conflict] = Field(
        default_factory=list,
        description="Without a model: the figures in which the quoted documents contradict each other, which the last"
        " sentence of the answer says too. Empty if they don't, and with a model",
    )
    sentences: list[Sentence]
    sources: list[Source] = Field(description="What the answerer received, in the order of the numbers")
    removed_citations: int = Field(default=0, description="Citation markers that named no source, and were removed")
    answerer: Answerer
    stop_reason: StopReason | None = Field(default=None, description="Null without a model call")
    cut_off: bool = Field(default=False, description="Whether the answer reached the maximum number of tokens")
    usage: Usage
    timings: Timings
    complete: bool = Field(description="False if a slice of the search failed or timed out: sources may be missing")
    notes: list[Note] = Field(default_factory=list)


class TokenEvent(_FrozenModel):
    """Event ``token``: the next piece of the answer, with verified citation markers. The pieces add up to it."""

    text: str


class CitationEvent(_FrozenModel):
    """Event ``citation``: a finished sentence that cites sources."""

    sentence: int = Field(description="Its index in ``sentences``, from 0")
    start: int
    end: int
    citations: list[int]


class SupportEvent(_FrozenModel):
    """Event ``support``: what the model judges of a cited sentence, after its answer has ended."""

    sentence: int = Field(description="Its index in ``sentences``, from 0")
    support: Verdict
