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
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import unquote

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    StringConstraints,
    ValidationError,
)

from ragstack_common.core.errors import RagStackError
from ragstack_common.core.uris import file_name
from ragstack_local.errors import UsageError

CORPUS: Final = "corpus.jsonl"
QUERIES: Final = "queries.jsonl"
FILTERS: Final = "filters.jsonl"

Judgments = Mapping[str, Mapping[str, int]]
"""Grades by document, by query; 0 is judged to be irrelevant."""

Line = TypeVar("Line", bound=BaseModel)
NonBlank = Annotated[StrictStr, StringConstraints(pattern=r"\S")]
Attributes = dict[str, StrictBool | StrictInt | StrictFloat | StrictStr]


class EvaluationError(RagStackError):
    """The evaluation is impossible; the message says what to do."""


class DataSetError(EvaluationError, UsageError):
    """A data set is not in BEIR's form; the message names file and line."""


class Document(BaseModel):
    """A document of the collection; it becomes one source of the knowledge base."""

    model_config = ConfigDict(frozen=True, validate_by_name=True)

    id: str = Field(alias="_id", min_length=1)
    title: StrictStr = ""
    text: StrictStr = ""
    metadata: dict[str, Any] = {}

    @property
    def markdown(self) -> str:
        """The text under its title, which a text that begins with a heading has already."""
        if not self.title or self.text.lstrip().startswith("# "):
            return self.text
        return f"# {' '.join(self.title.split())}\n\n{self.text}"


@dataclass(frozen=True)
class EvaluationQuery:
    """A question.

    Attributes:
        attributes: Attributes of the documents that answer it; empty if unknown.
        filters: The first filter of each kind in the file.
        answers: Reference answers; any of them is acceptable.
        before: The previous question of the conversation, for a follow-up.
    """

    id: str
    text: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    filters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    answers: tuple[str, ...] = ()
    before: str | None = None


@dataclass(frozen=True)
class DataSet:
    """A collection with its judgments; documents and queries are in the order of the file.

    Attributes:
        name: Name of the folder.
        split: Name of the judgments.
        digest: Hash of the documents.
        documents: Documents by id.
        queries: Queries with a relevant document.
        unanswerable: Questions that the collection does not answer.
        has_texts: False if the documents were ingested elsewhere, and only the judged ones are known, by name.
        cluster: Attribute whose values group the queries for intervals, if any.
    """

    name: str
    split: str
    digest: str
    documents: Mapping[str, Document]
    queries: tuple[EvaluationQuery, ...]
    judgments: Judgments
    unanswerable: tuple[EvaluationQuery, ...] = ()
    has_texts: bool = True
    cluster: str | None = None

    @property
    def title(self) -> str:
        """The name with the counts."""
        return f"{self.name}, {self.split}: {len(self.queries):,} queries, {len(self.documents):,} documents"

    @property
    def clusters(self) -> list[int]:
        """A number for each query: the same for queries with the same value of the cluster's attribute."""
        numbers: dict[tuple[str, Any], int] = {}
        cluster = self.cluster or ""
        keys = (
            ("query", query.id) if cluster not in query.attributes else ("value", query.attributes[cluster])
            for query in self.queries
        )
        return [numbers.setdefault(key, len(numbers)) for key in keys]

    def relevant(self, query: EvaluationQuery) -> frozenset[str]:
        """Return the documents that are judged to be relevant."""
        return frozenset(document for document, grade in self.judgments[query.id].items() if grade > 0)

    def documents_of(self, sources: Sequence[str]) -> tuple[str, ...]:
        """Return the documents of sources, each once, at its best rank.

        A source is a document's id, or a file with its name: ``s3://bucket/folder/ID.md``, its special characters as in
        a URL. Without texts, a source that no judgment names is irrelevant.

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
        name = file_name(source)
        for candidate in (unquote(name), unquote(name.rpartition(".")[0])):
            if candidate in self.documents:
                return candidate
        raise DataSetError(f"The source {source!r} is not in the collection: search an index of it alone")

    def wrong_attributes(self, query: EvaluationQuery, seed: int) -> dict[str, Any]:
        """Draw, for each attribute of a query, another value that documents have; the seed decides which.

        Raises:
            DataSetError: There is no other value.
        """
        wrong = {}
        for name, right in query.attributes.items():
            known = {document.metadata[name] for document in self.documents.values() if name in document.metadata}
            others = [value for value in sorted(known, key=str) if value != right]
            if not others:
                raise DataSetError(
                    f"The documents of {self.name} have no other {name} than {right!r}: no filter is wrong"
                )
            wrong[name] = random.Random(f"{seed} {query.id} {name}").choice(others)  # noqa: S311 - no secret
        return wrong


def read(place: Path, split: str = "test", queries: int | None = None, cluster: str | None = None) -> DataSet:
    """Read a data set in BEIR's format from a folder, or questions and the files that answer them from one file.

    Args:
        place: The folder; or CSV with the columns ``question`` and ``file``, or JSON lines with these members. A
            question with several files has several lines. A file is a name, the end of a key such as
            ``guides/leave.md``, or a URI.
        split: Name of the file with the judgments.
        queries: Number of queries of each kind that are kept; None keeps all.
        cluster: Attribute whose values group the queries.

    Raises:
        DataSetError: A file is missing or malformed, or no query has the attribute.
    """
    found = _read_questions(place, queries) if place.is_file() else _read_folder(place, split, queries, cluster)
    if cluster is not None and not any(cluster in query.attributes for query in found.queries):
        raise DataSetError(f"No query of {found.name} has the attribute {cluster} in its metadata.filter")
    return found


class _QuestionLine(BaseModel):
    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    file: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


def _read_questions(file: Path, count: int | None) -> DataSet:
    judgments: dict[str, dict[str, int]] = {}
    if file.suffix.lower() == ".csv":
        rows = csv.DictReader(line for _, line in _lines(file))
        if not {"question", "file"} <= {*(rows.fieldnames or ())}:
            raise DataSetError(f"{file}: the first line must name the columns question and file")
        entries = (_parsed(_QuestionLine, json.dumps(row), file, rows.line_num) for row in rows)
    else:
        entries = (_parsed(_QuestionLine, line, file, number) for number, line in _lines(file))
    for entry in entries:
        judgments.setdefault(entry.question, {})[entry.file] = 1
    if not judgments:
        raise DataSetError(f"{file}: there are no questions: write a line 'question,file', and one for each question")
    queries = tuple(EvaluationQuery(f"q{number}", text) for number, text in enumerate(judgments, start=1))[:count]
    documents = {name: Document(id=name) for files in judgments.values() for name in files}
    by_query = {query.id: judgments[query.text] for query in queries}
    digest = sha256(file.read_bytes()).hexdigest()
    return DataSet(file.stem, file.stem, digest, documents, queries, by_query, has_texts=False)


class _DocumentLine(Document):
    text: StrictStr


class _QueryMetadata(BaseModel):
    filter: Attributes = {}
    answer: Annotated[tuple[NonBlank, ...], BeforeValidator(lambda one: [one] if isinstance(one, str) else one)] = ()
    answerable: StrictBool = True
    before: NonBlank | None = None


class _QueryLine(BaseModel):
    id: str = Field(alias="_id", min_length=1)
    text: NonBlank
    metadata: _QueryMetadata = _QueryMetadata()


class _FilterLine(BaseModel, extra="allow"):
    id: str = Field(alias="_id", min_length=1)
    __pydantic_extra__: dict[str, Attributes | list[Attributes]]

    @property
    def by_kind(self) -> dict[str, Attributes]:
        """The first filter of each kind that has any."""
        kinds = {kind: [found] if isinstance(found, dict) else found for kind, found in self.__pydantic_extra__.items()}
        return {kind: found[0] for kind, found in kinds.items() if found}


def _read_folder(folder: Path, split: str, count: int | None, cluster: str | None) -> DataSet:
    documents = entries(folder / CORPUS, _DocumentLine)
    filters = entries(folder / FILTERS, _FilterLine) if (folder / FILTERS).exists() else {}
    lines = entries(folder / QUERIES, _QueryLine)
    judgments = _judgments(folder / "qrels" / f"{split}.tsv", documents, lines)
    queries, unanswerable = [], []
    for name, line in lines.items():
        further = filters[name].by_kind if name in filters else {}
        metadata = line.metadata
        query = EvaluationQuery(name, line.text, metadata.filter, further, metadata.answer, metadata.before)
        has_relevant = any(grade > 0 for grade in judgments.get(name, {}).values())
        if has_relevant and not line.metadata.answerable:
            raise DataSetError(
                f"{folder / QUERIES}: {name!r} is not answerable, but has a relevant document in the split"
            )
        if has_relevant:
            queries.append(query)
        elif not line.metadata.answerable:
            unanswerable.append(query)
    if not queries:
        raise DataSetError(f"{folder}: no query has a relevant document in the split {split}")
    return DataSet(
        folder.resolve().name,
        split,
        sha256((folder / CORPUS).read_bytes()).hexdigest(),
        documents,
        tuple(queries[:count]),
        {query.id: judgments[query.id] for query in queries[:count]},
        tuple(unanswerable[:count]),
        cluster=cluster,
    )


def entries(file: Path, kind: type[Line]) -> dict[str, Line]:
    """Read every line, by id."""
    found: dict[str, Line] = {}
    for number, line in _lines(file):
        entry = _parsed(kind, line, file, number)
        name: str = entry.id  # type: ignore[attr-defined] # every kind has one
        if name in found:
            raise DataSetError(f"{file}, line {number}: there is another {name!r} above")
        found[name] = entry
    if not found:
        raise DataSetError(f"{file}: the file is empty")
    return found


def _parsed(kind: type[Line], line: str, file: Path, number: int) -> Line:
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"])) or "the line"
        hint = " Is it CSV? Call it .csv" if kind is _QuestionLine and problem["type"] == "json_invalid" else ""
        raise DataSetError(f"{file}, line {number}: {where}: {problem['msg']}{hint}") from None


def _judgments(file: Path, documents: Mapping[str, object], queries: Mapping[str, object]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for number, line in _lines(file):
        at = f"{file}, line {number}"
        fields = line.rstrip("\r\n").split("\t")
        if number == 1 and fields[-1] == "score":
            continue
        if len(fields) != 3:  # noqa: PLR2004 - as the message says
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
