"""Answers as the API streams them."""

import json
from collections.abc import Iterator
from typing import Any

from ragstack_common.answers.answer import Answerer, CitedText, Sentence, Source, Timings, TokenEvent, Usage
from ragstack_common.services.ask_models import AskResponse, SourcesEvent

QUESTION = "How many requests may one key make?"
CONTENT = "# Rate limits\n\nOne API key may make 600 requests a minute."
QUOTED = "One API key may make 600 requests a minute."
TEXT = f"“{QUOTED}” [1] Ask for more."

SOURCES = (
    Source(
        number=1,
        content=CONTENT,
        source="s3://b/limits.md",
        context="Reach API\nRate limits",
        page=4,
        section="Rate limits",
        score=0.9,
        cited=True,
        quoted=[CitedText(start=CONTENT.index(QUOTED), end=len(CONTENT))],
    ),
    Source(number=2, content="The price of requests.", source="s3://b/prices.md", score=0.5),
)


def response(**more: Any) -> AskResponse:
    start = len(TEXT) - len("Ask for more.")
    fields: dict[str, Any] = {
        "question": QUESTION,
        "answer": TEXT,
        "answered": True,
        "sentences": [
            Sentence(start=0, end=start - 1, text=f"“{QUOTED}”", citations=[1], unsupported=False),
            Sentence(start=start, end=len(TEXT), text="Ask for more.", citations=[], unsupported=True),
        ],
        "sources": list(SOURCES),
        "answerer": Answerer(provider="extractive", model="extractive", quotes=True),
        "usage": Usage(),
        "timings": Timings(retrieval_ms=100.0, first_token_ms=120.0, total_ms=200.0),
        "complete": True,
        "slices": [],
        "corpora": [],
    }
    return AskResponse(**{**fields, **more})


def events(answer: AskResponse) -> Iterator[bytes]:
    first = SourcesEvent(
        question=answer.question, sources=answer.sources, complete=True, retrieval_ms=100.0, slices=[], corpora=[]
    )
    yield _event("sources", first.model_dump(mode="json"))
    for word in answer.answer.split(" "):
        yield _event("token", TokenEvent(text=f"{word} ").model_dump())
    yield _event("done", answer.model_dump(mode="json"))


def _event(name: str, data: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()
