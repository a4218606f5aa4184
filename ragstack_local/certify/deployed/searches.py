"""Checks of searches and answers through the API."""

from collections.abc import Mapping
from typing import Any, Final

from ragstack_local.certify.check import Json, Source, Topic
from ragstack_local.certify.deployed import deployment
from ragstack_local.certify.deployed.calls import Answer
from ragstack_local.certify.deployed.samples import (
    ASCII,
    ATTRIBUTE,
    KIND,
    MAIL,
    MARKDOWN,
    PAGES,
    SAMPLES,
    UTF8,
    Sample,
    kind_of,
    results,
    samples,
    search,
)
from ragstack_local.certify.site import Site

WORDS: Final = "words (docs/SEARCH.md#words)"

SEARCH: Final = Topic("search", "filters (docs/SEARCH.md#filters)", "")
ANSWERS: Final = Topic("answers", "answers (docs/ANSWERS.md)", "")

STREAMED_ATTEMPTS: Final = 5
"""Answers without a model take milliseconds, so two parts may arrive together by chance."""

APART_SECONDS: Final = 0.001
"""Between the first and the last part of a stream; what was buffered arrives in less."""


def _names(*chosen: Sample) -> list[Json]:
    return [*sorted(each.name for each in chosen)]


@SEARCH.check(
    "filters",
    "The API's searches with strict filters find all matching documents and no others",
    Source.DOCUMENTATION,
    {
        "equal": _names(ASCII),
        "not equal": _names(UTF8, MARKDOWN, MAIL, PAGES),
        "in": _names(ASCII, PAGES),
        "not in": _names(UTF8, MARKDOWN, MAIL),
        "no document": [],
    },
)
def _filters(site: Site) -> Json:
    """Search with one filter of each kind; returns the samples that were found."""
    site.shared(samples)
    deployed = deployment.of(site)
    own = {ATTRIBUTE: {"$eq": site.token}}
    filters: Mapping[str, Mapping[str, Any]] = {
        "equal": {KIND: {"$eq": ASCII.name}},
        "not equal": {KIND: {"$ne": ASCII.name}},
        "in": {KIND: {"$in": [ASCII.name, PAGES.name]}},
        "not in": {KIND: {"$nin": [ASCII.name, PAGES.name]}},
        "no document": {KIND: {"$eq": "another.txt"}},
    }
    return {
        name: sorted({kind_of(each) for each in search(deployed, ASCII.question, {**own, **chosen})})
        for name, chosen in filters.items()
    }


@SEARCH.check(
    "words",
    "The API's search for a rare word ranks the document that contains it first",
    Source.GUESS,
    {each.name: each.name for each in SAMPLES},
    used_by=WORDS,
)
def _words(site: Site) -> Json:
    """Search for a word that one document has."""
    site.shared(samples)
    deployed = deployment.of(site)
    first = {each.name: next(iter(results(deployed, each.word)), None) for each in SAMPLES}
    return {name: None if result is None else kind_of(result) for name, result in first.items()}


@SEARCH.check(
    "word_search",
    "The stacks search words in the index that they create",
    Source.GUESS,
    "HYBRID",
    used_by=WORDS,
    aws_only="the local knowledge base always searches words",
)
def _word_search(site: Site) -> Json:
    found = deployment.of(site).read("GET", "/api/status")["word_search"]
    return found["search_type"]


def _asked(site: Site, wanted: Sample) -> Mapping[str, Any]:
    chosen = {ATTRIBUTE: {"$eq": site.token}}
    return {"question": wanted.question, "metadata_filter": chosen, "filter_mode": "strict"}


@ANSWERS.check(
    "citation",
    "An answer quotes the document, and names its page",
    Source.GUESS,
    {"answers": True, "cites": PAGES.name, "page": 2, "quotes": True, "complete": True},
)
def _answer(site: Site) -> Json:
    site.shared(samples)
    found = deployment.of(site).call("POST", "/api/ask", _asked(site, PAGES), streams=True).content
    cited = next((source for source in found["sources"] if source["cited"]), None)
    return {
        "answers": PAGES.sentence in found["answer"],
        "cites": None if cited is None else kind_of(cited),
        "page": None if cited is None else cited["page"],
        "quotes": bool(cited and cited["quoted"]),
        "complete": found["complete"],
    }


@ANSWERS.check(
    "stream",
    "The events of an answer arrive one after the other through API Gateway",
    Source.DOCUMENTATION,
    {"type": "text/event-stream", "first event": "sources", "last event": "done", "arrives": "in parts"},
)
def _stream(site: Site) -> Json:
    """Read an answer as it arrives."""
    site.shared(samples)
    for _ in range(STREAMED_ATTEMPTS):
        answer = deployment.of(site).call("POST", "/api/ask/stream", _asked(site, ASCII), streams=True)
        if _arrives_in_parts(answer):
            break
    lines = answer.body.decode().splitlines()
    names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    return {
        "type": answer.headers.get("content-type", "").partition(";")[0],
        "first event": names[0] if names else None,
        "last event": names[-1] if names else None,
        "arrives": "in parts" if _arrives_in_parts(answer) else "at once",
    }


def _arrives_in_parts(answer: Answer) -> bool:
    return len(answer.arrivals) > 1 and answer.arrivals[-1] > APART_SECONDS
