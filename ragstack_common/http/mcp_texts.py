"""Results of the tools as text for language models: numbered sources, and what limits them.

Text of documents is quoted: each of its lines begins with ``>``, so that no document can imitate another source. Names
and attributes of documents are one line each.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ragstack_common.search.models import Missing, Note
from ragstack_common.services.ask_models import AskResponse
from ragstack_common.services.catalogue import Corpora, Versions
from ragstack_common.services.document_models import DocumentList
from ragstack_common.services.search_models import RetrievedResult, RetrieveResponse
from ragstack_common.settings.names import CORPUS_KEY, VERSION_KEY

_INCOMPLETE: Final = "Incomplete: a part of the search failed or timed out, and sources may be missing."


def search_text(response: RetrieveResponse) -> str:
    """Number the results, each with its document and passages."""
    return "\n\n".join(_search_parts(response))


def answer_text(response: AskResponse) -> str:
    """Return the answer, the cited sources below it, and what limits it."""
    return "\n\n".join(_answer_parts(response))


def corpora_text(response: Corpora) -> str:
    """List the corpora."""
    if not response.corpora:
        return "No searchable document has a corpus."
    lines = []
    for corpus in response.corpora:
        count = "" if corpus.documents is None else f": {_documents(corpus.documents)}"
        lines.append(f"- {_one_line(corpus.name)}{count if corpus.searchable else ': no searchable documents'}")
    return "\n".join(lines if response.complete else [*lines, "There are more."])


def versions_text(response: Versions) -> str:
    """List the versions as JSON, whose type counts in a filter."""
    if not response.versions:
        return "No searchable document has a version."
    counts: Sequence[int | None] = response.documents or [None] * len(response.versions)
    lines = [
        f"- {json.dumps(version, ensure_ascii=False)}" + ("" if count is None else f": {_documents(count)}")
        for version, count in zip(response.versions, counts, strict=True)
    ]
    return "\n".join(lines if response.complete else [*lines, "There are more."])


def documents_text(response: DocumentList) -> str:
    """Describe the status of each document."""
    lines = []
    for document in response.documents:
        found = "searches find it" if document.searchable else "searches do not find it"
        reason = f" Reason: {_one_line(document.reason)}" if document.reason else ""
        lines.append(f"{_one_line(document.uri)}: {document.status.value}, {found}.{reason}")
    return "\n".join(lines) or "There is no such document: it was not uploaded, or it has another key."


def tool_text(output: Mapping[str, Any]) -> str:
    """Number the results of a retriever; the output of any other tool is JSON."""
    results = output.get("results")
    if not isinstance(results, list) or not all(isinstance(each, Mapping) and "text" in each for each in results):
        return json.dumps(output, ensure_ascii=False)
    parts = []
    for number, result in enumerate(results, start=1):
        source = (result.get("metadata") or {}).get("source")
        head = _head(number, source, f"id {result['id']}" if "id" in result else None)
        parts.append(f"{head}\n{_quoted(result['text'])}")
    return "\n\n".join(parts) or "Nothing was found."


def _search_parts(response: RetrieveResponse) -> Iterator[str]:
    if not response.results:
        yield "Nothing was found."
    elif response.answerable is False:
        yield "Nothing found is likely to answer the question; the closest results follow."
    for number, result in enumerate(response.results, start=1):
        relevance = None if result.relevance is None else f"relevance {result.relevance:.2f}"
        title = (result.context or "").partition("\n")[0]
        attributes = (
            f"{name} {result.metadata[name]}" for name in (CORPUS_KEY, VERSION_KEY) if name in result.metadata
        )
        yield "\n".join([_head(number, result.source, title, *attributes, relevance), *_passages(result)])
    yield from _remarks(response.missing, response.notes)
    if not response.complete:
        yield _INCOMPLETE


def _remarks(missing: Missing | None, notes: Iterable[Note]) -> Iterator[str]:
    yield from (_one_line(text) for text in ([] if missing is None else [missing.text]))
    yield from (_one_line(note.text) for note in notes)


def _passages(result: RetrievedResult) -> Iterator[str]:
    for passage in result.passages or [result]:
        place = _one_line(passage.place)
        yield f"({place})\n{_quoted(passage.content)}" if place else _quoted(passage.content)


def _answer_parts(response: AskResponse) -> Iterator[str]:
    yield response.answer
    cited = [source for source in response.sources if source.cited]
    if cited:
        heads = [_head(each.number, each.source, _one_line(each.place)) for each in cited]
        yield "\n".join(["Sources:", *heads])
    if response.answerer.quotes and response.answered:
        yield "The answer quotes the documents; no model wrote it."
    unsupported = [sentence.text for sentence in response.sentences if sentence.unsupported]
    if unsupported and response.answered:
        yield "\n".join(["No source supports these sentences:", *(f"- {_one_line(text)}" for text in unsupported)])
    if response.cut_off:
        yield "The answer is cut off: it reached the maximum number of tokens."
    yield from _remarks(response.missing, response.notes)
    if not response.complete:
        yield _INCOMPLETE


def _head(number: int, source: str | None, *details: str | None) -> str:
    shown = "; ".join(_one_line(detail) for detail in details if detail)
    return f"[{number}] {_one_line(source or 'unnamed document')}" + (f" ({shown})" if shown else "")


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines()) or "> "


def _documents(count: int) -> str:
    return f"{count} document" if count == 1 else f"{count} documents"


def _one_line(text: str) -> str:
    return " ".join(text.split())
