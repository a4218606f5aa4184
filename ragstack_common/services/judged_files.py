"""Judgments as a data set in BEIR's form, with the passages that searches find of the judged documents.

The command line and the console save what this writes. Thousands of documents take longer, and are larger, than a
response may be, so the files come in pages.
"""

import asyncio
import csv
import io
import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, Final

from ragstack_common.access.callers import Caller
from ragstack_common.access.guard import Guard
from ragstack_common.core.clients import dynamodb_client
from ragstack_common.core.deadline import in_thread, wait_for
from ragstack_common.core.errors import ConfigurationError, InvalidRequestError, RetrievalError
from ragstack_common.core.times import iso
from ragstack_common.core.uris import key_of_uri
from ragstack_common.search.naming import ADDED_PREFIXES
from ragstack_common.services.judged_file_models import CORPUS, QRELS, QUERIES, QUESTIONS, JudgedFiles
from ragstack_common.services.judgments import Judgment, Judgments
from ragstack_common.services.search import QueryService
from ragstack_common.services.search_models import RetrieveRequest
from ragstack_common.settings.limits import MAX_RESULTS
from ragstack_common.settings.names import SOURCE_URI_KEY

CALLS_AT_ONCE: Final = 4

PAGE_BYTES: Final = 2_000_000
"""A page ends after the documents with which it is larger. Four more of them stay below the 6 MB of an answer of
Lambda."""

PAGE_SECONDS: Final = 3.0
"""A page starts no more searches after this. The function may run 5 seconds longer than the longest search."""


@dataclass(frozen=True)
class JudgmentExport:
    """Writes judgments as files.

    Attributes:
        judgments: What people judged.
        searches: Finds the passages.
        clock: Seconds since 1970.
    """

    judgments: Judgments
    searches: QueryService
    clock: Callable[[], float] = time.time

    @classmethod
    def from_env(cls, env: Mapping[str, str], searches: QueryService) -> "JudgmentExport":
        """Export the judgments in the registry that the environment names.

        Raises:
            ConfigurationError: It names none, or another variable is invalid.
        """
        table = searches.settings.registry_table
        if table is None:
            raise ConfigurationError("REGISTRY_TABLE is missing: it has the judgments")
        return cls(Judgments(dynamodb_client(), table, Guard.from_env(env)), searches)

    def page(self, caller: Caller, *, of_all: bool, token: str | None = None) -> JudgedFiles:
        """Write a page of the caller's judgments, or of those of all callers, of which the newest counts.

        Later pages leave out what was judged after the first one, so that the files fit together.

        Raises:
            InvalidRequestError: The token is from another listing.
            NotAllowedError: The caller asks for those of all, and is no operator.
            RagStackError: A search or the registry failed.
        """
        return wait_for(self._page(caller, token, of_all=of_all))

    async def _page(self, caller: Caller, token: str | None, *, of_all: bool) -> JudgedFiles:
        until, after = (iso(self.clock()), "") if token is None else _read_token(token)
        found = await in_thread(partial(self.judgments.every, caller, of_all=of_all))
        judged = _Judged.of(judgment for judgment in found if judgment.at <= until)
        sources = sorted(source for source in judged.grades if source > after)
        documents = await self._documents(caller, {source: judged.question(source) for source in sources})
        last = next(reversed(documents), None)
        left = len(sources) - len(documents)
        return JudgedFiles(
            files=judged.written(documents, is_first=token is None),
            left_out=[source for source, document in documents.items() if document is None],
            documents_left=left,
            next_token=urlsafe_b64encode(f"{until}#{last}".encode()).decode() if left else None,
        )

    async def _documents(self, caller: Caller, questions: Mapping[str, str]) -> dict[str, dict[str, Any] | None]:
        """Return the first documents as lines of the corpus, by source; None for one that searches do not find."""
        documents: dict[str, dict[str, Any] | None] = {}
        end, size, waiting = self.clock() + PAGE_SECONDS, 0, iter(questions.items())
        while (some := [*islice(waiting, CALLS_AT_ONCE)]) and size < PAGE_BYTES and self.clock() < end:
            found = await asyncio.gather(*(self._document(caller, source, question) for source, question in some))
            documents |= {source: document for (source, _), document in zip(some, found, strict=True)}
            size += sum(len(document["text"].encode()) for document in found if document)
        return documents

    async def _document(self, caller: Caller, source: str, question: str) -> dict[str, Any] | None:
        request = RetrieveRequest(
            query=question,
            metadata_filter={SOURCE_URI_KEY: {"$eq": source}},
            filter_mode="strict",
            infer_filter=False,
            deduplicate_by="chunk",
            top_k=MAX_RESULTS,
        )
        answer = await self.searches.retrieve_async(request, caller)
        if not answer.complete:
            raise RetrievalError(f"A part of the search for the passages of {source} failed: try again")
        results = [each for each in answer.results if each.source == source]
        if not results:
            return None
        own = results[0].metadata.items()
        return {
            "_id": _name_of(source),
            "title": PurePosixPath(_name_of(source)).stem,
            "text": "\n\n".join(each.content for each in results),
            "metadata": {name: value for name, value in own if not name.startswith(ADDED_PREFIXES)},
        }


@dataclass(frozen=True)
class _Judged:
    """The newest judgments: questions and reference answers by query, and grades by source and query."""

    queries: Mapping[str, str]
    references: Mapping[str, str]
    grades: Mapping[str, Mapping[str, int]]

    @classmethod
    def of(cls, judgments: Iterable[Judgment]) -> "_Judged":
        queries: dict[str, str] = {}
        references: dict[str, str] = {}
        grades: dict[str, dict[str, int]] = defaultdict(dict)
        for judgment in judgments:
            queries[judgment.query_id] = judgment.query
            if judgment.document is not None and judgment.grade is not None:
                grades[judgment.document][judgment.query_id] = judgment.grade
            elif judgment.reference is not None:
                references[judgment.query_id] = judgment.reference
        return cls(queries, references, grades)

    def question(self, source: str) -> str:
        """Return a question for which a document was judged."""
        return self.queries[next(iter(self.grades[source]))]

    def written(self, documents: Mapping[str, Mapping[str, Any] | None], *, is_first: bool) -> dict[str, str]:
        """Write the files of a page; the first one has the questions and the headings."""
        corpus = [(source, document) for source, document in documents.items() if document]
        graded = [
            (query, source, document["_id"], grade)
            for source, document in corpus
            for query, grade in self.grades[source].items()
        ]
        queries = [
            {
                "_id": name,
                "text": text,
                "metadata": {"answer": self.references[name]} if name in self.references else {},
            }
            for name, text in self.queries.items()
        ]
        qrels = [f"{query}\t{name}\t{grade}" for query, _, name, grade in graded]
        questions = [(self.queries[query], source) for query, source, _, grade in graded if grade > 0]
        if is_first:
            qrels.insert(0, "query-id\tcorpus-id\tscore")
            questions.insert(0, ("question", "file"))
        return {
            QUERIES: _lines(queries if is_first else []),
            CORPUS: _lines([document for _, document in corpus]),
            QRELS: "".join(f"{line}\n" for line in qrels),
            QUESTIONS: _csv(questions),
        }


def _name_of(source: str) -> str:
    """Return the key of an S3 URI, and any other source as it is."""
    return key_of_uri(source) or source


def _lines(entries: Sequence[Mapping[str, Any]]) -> str:
    return "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in entries)


def _csv(rows: Sequence[tuple[str, str]]) -> str:
    written = io.StringIO(newline="")
    csv.writer(written).writerows(rows)
    return written.getvalue()


def _read_token(token: str) -> tuple[str, str]:
    """Return the time of the first page, and the last document of the previous one."""
    try:
        until, is_split, after = urlsafe_b64decode(token).decode().partition("#")
    except ValueError:
        is_split = ""
    if not is_split:
        raise InvalidRequestError("next_token does not belong to this listing: take it from the previous page")
    return until, after
