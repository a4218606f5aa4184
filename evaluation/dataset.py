"""A collection with queries and judgments, read from a folder in BEIR's format.

``corpus.jsonl`` has ``_id``, ``title``, ``text``, ``metadata``; ``queries.jsonl`` has ``_id``, ``text`` and, where they
are known, ``metadata.filter`` with the right attributes, ``metadata.answer`` with the reference answer or a list of
acceptable ones, and ``metadata.answerable``, false for a question that the collection does not answer;
``qrels/SPLIT.tsv`` has query, document and grade. The optional ``filters.jsonl`` has ``_id`` of a query and further
filters of its attributes, by kind: one, or a list.
"""

import csv
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import unquote

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    StringConstraints,
    ValidationError,
)

from ragstack_common.core.errors import RagStackError
from ragstack_local.errors import UsageError

CORPUS: Final = "corpus.jsonl"
QUERIES: Final = "queries.jsonl"
FILTERS: Final = "filters.jsonl"
JUDGMENT_FIELDS: Final = 3

Judgments = Mapping[str, Mapping[str, int]]
"""Grades by document, by query; 0 is judged to be irrelevant."""


class EvaluationError(RagStackError):
    """The evaluation is impossible; the message says what to do."""


class DataSetError(EvaluationError, UsageError):
    """A data set is not in BEIR's form; the message names file and line."""


@dataclass(frozen=True)
class Document:
    """A document of the collection; it becomes one source of the knowledge base."""

    id: str
    title: str
    text: str
    metadata: Mapping[str, Any]

    @property
    def markdown(self) -> str:
        """The text under its title, which a text that begins with a heading has already."""
        if not self.title or self.text.lstrip().startswith("# "):
            return self.text
        return f"# {' '.join(self.title.split())}\n\n{self.text}"


@dataclass(frozen=True)
class Query:
    """A question."""

    id: str
    text: str
    attributes: Mapping[str, Any]  # of the documents that answer it; empty if unknown
    filters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of FILTERS, the first of each kind
    answers: tuple[str, ...] = ()  # references; any of them is acceptable


@dataclass(frozen=True)
class DataSet:
    """A collection with its judgments.

    Attributes:
        name: The folder's.
        split: Which judgments these are.
        digest: Of the documents.
        documents: In the order of the file, by id.
        queries: Those with a relevant document, in the order of the file.
        judgments: For each of the queries.
        unanswerable: Questions that the collection does not answer, in the order of the file.
        has_texts: False if the documents were ingested elsewhere, and only the judged ones are known, by name.
    """

    name: str
    split: str
    digest: str
    documents: Mapping[str, Document]
    queries: tuple[Query, ...]
    judgments: Judgments
    unanswerable: tuple[Query, ...] = ()
    has_texts: bool = True

    def documents_of(self, sources: Sequence[str]) -> tuple[str, ...]:
        """Return the documents of sources, each once, at its best rank.

        A source is a document's id, or a file that is called like it: ``s3://bucket/folder/ID.md``, its special
        characters as in a URL. Without texts, a source that no judgment names is irrelevant.

        Raises:
            DataSetError: A source is not a document of the collection, so it cannot be judged.
        """
        return tuple(dict.fromkeys(map(self._document_of, sources)))

    def _document_of(self, source: str) -> str:
        if source in self.documents:
            return source
        if not self.has_texts:
            ends = (source[place + 1 :] for place, character in enumerate(source) if character == "/")
            return next((end for end in ends if end in self.documents), source)
        name = source.rpartition("/")[2]
        for candidate in (unquote(name), unquote(name.rpartition(".")[0])):
            if candidate in self.documents:
                return candidate
        raise DataSetError(f"The source {source!r} is not in the collection: search an index of it alone")

    def first(self, queries: int | None) -> "DataSet":
        """Keep the first queries of each kind only; None keeps all."""
        kept = self.queries[:queries]
        judgments = {query.id: self.judgments[query.id] for query in kept}
        return replace(self, queries=kept, judgments=judgments, unanswerable=self.unanswerable[:queries])

    def values_of(self, attribute: str) -> list[Any]:
        """Return the different values that the documents have, ordered."""
        values = {
            document.metadata[attribute] for document in self.documents.values() if attribute in document.metadata
        }
        return sorted(values, key=str)

    def clusters(self, attribute: str) -> list[int]:
        """Number the queries by their value of an attribute; each query without a value has a number of its own.

        Raises:
            DataSetError: No query has the attribute.
        """
        if not any(attribute in query.attributes for query in self.queries):
            raise DataSetError(f"No query of {self.name} has the attribute {attribute} in its metadata.filter")
        numbers: dict[tuple[str, Any], int] = {}
        keys = (
            ("value", q.attributes[attribute]) if attribute in q.attributes else ("query", q.id) for q in self.queries
        )
        return [numbers.setdefault(key, len(numbers)) for key in keys]

    def wrong_attributes(self, query: Query, seed: int) -> dict[str, Any]:
        """Draw, for each attribute of a query, another value that documents have; the same seed draws the same.

        Raises:
            DataSetError: There is no other value.
        """
        wrong = {}
        for name, right in query.attributes.items():
            others = [value for value in self.values_of(name) if value != right]
            if not others:
                raise DataSetError(
                    f"The documents of {self.name} have no other {name} than {right!r}: no filter is wrong"
                )
            wrong[name] = random.Random(f"{seed} {query.id} {name}").choice(others)  # noqa: S311 - no secret
        return wrong


def read(place: Path, split: str = "test") -> DataSet:
    """Read a data set in BEIR's format from a folder, or questions and the files that answer them from one file.

    Raises:
        DataSetError: A file is missing or malformed.
    """
    return read_questions(place) if place.is_file() else _read_folder(place, split)


def read_questions(file: Path) -> DataSet:
    """Read questions about documents that are ingested already.

    Args:
        file: CSV with the columns ``question`` and ``file``, or JSON lines with these members. A question with several
            files has several lines. A file is a name, the end of a key such as ``guides/leave.md``, or a URI.

    Raises:
        DataSetError: The file cannot be read, or a line lacks a member.
    """
    judgments: dict[str, dict[str, int]] = {}
    for number, line in _question_lines(file):
        try:
            entry = _Question.model_validate(line)
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(map(str, problem["loc"])) or "the line"
            raise DataSetError(f"{file}, line {number}: {where}: {problem['msg']}") from None
        judgments.setdefault(entry.question, {})[entry.file] = 1
    if not judgments:
        raise DataSetError(f"{file}: there are no questions: write a line 'question,file', and one for each question")
    queries = tuple(Query(f"q{number}", text, {}) for number, text in enumerate(judgments, start=1))
    documents = {name: Document(name, "", "", {}) for files in judgments.values() for name in files}
    by_query = {query.id: judgments[query.text] for query in queries}
    digest = sha256(file.read_bytes()).hexdigest()
    return DataSet(file.stem, file.stem, digest, documents, queries, by_query, has_texts=False)


class _Question(BaseModel):
    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    file: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


def _question_lines(file: Path) -> Iterator[tuple[int, Any]]:
    lines = (line for _, line in _lines(file))
    if file.suffix.lower() == ".csv":
        rows = csv.DictReader(lines)
        missing = {"question", "file"} - {*(rows.fieldnames or ())}
        if missing:
            raise DataSetError(f"{file}: the first line must name the columns question and file")
        yield from ((rows.line_num, row) for row in rows)
        return
    for number, line in _lines(file):
        try:
            yield number, json.loads(line)
        except ValueError as error:
            raise DataSetError(f"{file}, line {number}: this is not JSON ({error}). Is it CSV? Call it .csv") from None


def _read_folder(folder: Path, split: str) -> DataSet:
    documents = {
        name: Document(name, entry.title, entry.text, entry.metadata)
        for name, entry in _entries(folder / CORPUS, _DocumentLine).items()
    }
    filters = _entries(folder / FILTERS, _FilterLine) if (folder / FILTERS).exists() else {}
    lines = _entries(folder / QUERIES, _QueryLine)
    texts = {
        name: Query(
            name,
            entry.text,
            entry.metadata.filter,
            filters[name].by_kind if name in filters else {},
            entry.metadata.answer,
        )
        for name, entry in lines.items()
    }
    judgments = _judgments(folder / "qrels" / f"{split}.tsv", documents, texts)
    queries = tuple(
        query for query in texts.values() if any(grade > 0 for grade in judgments.get(query.id, {}).values())
    )
    if not queries:
        raise DataSetError(f"{folder}: no query has a relevant document in the split {split}")
    contradictory = [query.id for query in queries if not lines[query.id].metadata.answerable]
    if contradictory:
        raise DataSetError(
            f"{folder / QUERIES}: {contradictory[0]!r} is not answerable, but has a relevant document in the split"
        )
    unanswerable = tuple(query for query in texts.values() if not lines[query.id].metadata.answerable)
    digest = sha256((folder / CORPUS).read_bytes()).hexdigest()
    kept = {query.id: judgments[query.id] for query in queries}
    return DataSet(folder.resolve().name, split, digest, documents, queries, kept, unanswerable)


class _Line(BaseModel):
    id: str = Field(alias="_id", min_length=1)


class _DocumentLine(_Line):
    title: StrictStr = ""
    text: StrictStr
    metadata: dict[str, Any] = {}


NonBlank = Annotated[StrictStr, StringConstraints(pattern=r"\S")]


class _QueryMetadata(BaseModel):
    filter: dict[str, StrictBool | StrictInt | StrictFloat | StrictStr] = {}
    answer: Annotated[tuple[NonBlank, ...], BeforeValidator(lambda one: [one] if isinstance(one, str) else one)] = ()
    answerable: StrictBool = True


class _QueryLine(_Line):
    text: NonBlank
    metadata: _QueryMetadata = _QueryMetadata()


Attributes = dict[str, StrictBool | StrictInt | StrictFloat | StrictStr]


class _FilterLine(_Line, extra="allow"):
    __pydantic_extra__: dict[str, Attributes | list[Attributes]]

    @property
    def by_kind(self) -> dict[str, Attributes]:
        """The first filter of each kind that has any."""
        kinds = {kind: [found] if isinstance(found, dict) else found for kind, found in self.__pydantic_extra__.items()}
        return {kind: found[0] for kind, found in kinds.items() if found}


Line = TypeVar("Line", bound=_Line)


def _entries(file: Path, kind: type[Line]) -> dict[str, Line]:
    """Read every line, by id."""
    found: dict[str, Line] = {}
    for number, line in _lines(file):
        try:
            entry = kind.model_validate_json(line)
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(map(str, problem["loc"])) or "the line"
            raise DataSetError(f"{file}, line {number}: {where}: {problem['msg']}") from None
        if entry.id in found:
            raise DataSetError(f"{file}, line {number}: there is another {entry.id!r} above")
        found[entry.id] = entry
    if not found:
        raise DataSetError(f"{file}: the file is empty")
    return found


def _judgments(
    file: Path, documents: Mapping[str, Document], queries: Mapping[str, Query]
) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for number, line in _lines(file):
        at = f"{file}, line {number}"
        fields = line.rstrip("\r\n").split("\t")
        if number == 1 and fields[-1] == "score":
            continue
        if len(fields) != JUDGMENT_FIELDS:
            raise DataSetError(f"{at}: query, document and grade with tabs between are expected, not {line.strip()!r}")
        query, document, grade = fields
        if query not in queries:
            raise DataSetError(f"{at}: there is no query {query!r} in {QUERIES}")
        if document not in documents:
            raise DataSetError(f"{at}: there is no document {document!r} in {CORPUS}")
        try:
            found.setdefault(query, {})[document] = int(grade)
        except ValueError:
            raise DataSetError(f"{at}: the grade {grade!r} is not a whole number") from None
    return found


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        with file.open(encoding="utf-8-sig") as lines:  # Excel writes the mark
            yield from ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    except UnicodeDecodeError as error:
        raise DataSetError(f"{file}: this is not UTF-8 ({error})") from None
    except OSError as error:
        raise DataSetError(f"{file} cannot be read: {error.strerror}") from None
