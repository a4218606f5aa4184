"""A collection with queries and judgments, read from a folder in BEIR's format.

``corpus.jsonl`` has ``_id``, ``title``, ``text``, ``metadata``; ``queries.jsonl`` has ``_id``, ``text`` and, where the
right attributes of a query are known, ``metadata.filter``; ``qrels/SPLIT.tsv`` has query, document and grade.
"""

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from ragstack_common.errors import RagStackError

CORPUS: Final = "corpus.jsonl"
QUERIES: Final = "queries.jsonl"
JUDGMENT_FIELDS: Final = 3

Judgments = Mapping[str, Mapping[str, int]]
"""Grades by document, by query; 0 is judged to be irrelevant."""


class EvaluationError(RagStackError):
    """The evaluation is impossible; the message says what to do."""


class DataSetError(EvaluationError):
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
    """A question.

    Attributes:
        id: As in the judgments.
        text: Not blank.
        attributes: Of the documents that answer it; empty if unknown.
    """

    id: str
    text: str
    attributes: Mapping[str, Any]


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
    """

    name: str
    split: str
    digest: str
    documents: Mapping[str, Document]
    queries: tuple[Query, ...]
    judgments: Judgments

    def first(self, queries: int | None) -> "DataSet":
        """Keep the first queries only; None keeps all."""
        kept = self.queries[:queries]
        judgments = {query.id: self.judgments[query.id] for query in kept}
        return DataSet(self.name, self.split, self.digest, self.documents, kept, judgments)

    def values_of(self, attribute: str) -> list[Any]:
        """Return the different values that the documents have, ordered."""
        values = {
            document.metadata[attribute] for document in self.documents.values() if attribute in document.metadata
        }
        return sorted(values, key=str)

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


def read(folder: Path, split: str = "test") -> DataSet:
    """Read a data set.

    Args:
        folder: Holds the three files.
        split: Name of the judgments' file.

    Raises:
        DataSetError: A file is missing or malformed.
    """
    documents = {
        identifier: Document(identifier, _text(entry, "title", at, ""), _text(entry, "text", at), _object(entry, at))
        for identifier, entry, at in _entries(folder / CORPUS)
    }
    texts = {
        identifier: Query(identifier, _query_text(entry, at), _filter(entry, at))
        for identifier, entry, at in _entries(folder / QUERIES)
    }
    judgments = _judgments(folder / "qrels" / f"{split}.tsv", documents, texts)
    queries = tuple(
        query for query in texts.values() if any(grade > 0 for grade in judgments.get(query.id, {}).values())
    )
    if not queries:
        raise DataSetError(f"{folder}: no query has a relevant document in the split {split}")
    digest = sha256((folder / CORPUS).read_bytes()).hexdigest()
    kept = {query.id: judgments[query.id] for query in queries}
    return DataSet(folder.resolve().name, split, digest, documents, queries, kept)


def _entries(file: Path) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield id, object and place of every line."""
    seen: dict[str, int] = {}
    for number, line in _lines(file):
        at = f"{file}, line {number}"
        try:
            entry = json.loads(line)
        except ValueError as error:
            raise DataSetError(f"{at}: this is not JSON ({error})") from None
        identifier = entry.get("_id") if isinstance(entry, dict) else None
        if not isinstance(identifier, str) or not identifier:
            raise DataSetError(f'{at}: an object with "_id", a text that is not empty, is expected')
        if identifier in seen:
            raise DataSetError(f"{at}: the _id {identifier!r} is already in line {seen[identifier]}")
        seen[identifier] = number
        yield identifier, entry, at
    if not seen:
        raise DataSetError(f"{file}: the file is empty")


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
        with file.open(encoding="utf-8") as lines:
            yield from ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    except UnicodeDecodeError as error:
        raise DataSetError(f"{file}: this is not UTF-8 ({error})") from None
    except OSError as error:
        raise DataSetError(f"{file} cannot be read: {error.strerror}") from None


def _text(entry: Mapping[str, Any], name: str, at: str, default: str | None = None) -> str:
    value = entry.get(name, default)
    if not isinstance(value, str):
        raise DataSetError(f'{at}: "{name}" must be a text, not {value!r}')
    return value


def _query_text(entry: Mapping[str, Any], at: str) -> str:
    text = _text(entry, "text", at)
    if not text.strip():
        raise DataSetError(f"{at}: the query is empty")
    return text


def _object(entry: Mapping[str, Any], at: str) -> Mapping[str, Any]:
    value = entry.get("metadata") or {}
    if not isinstance(value, dict):
        raise DataSetError(f'{at}: "metadata" must be an object, not {value!r}')
    return value


def _filter(entry: Mapping[str, Any], at: str) -> Mapping[str, Any]:
    value = _object(entry, at).get("filter") or {}
    if not isinstance(value, dict) or not all(isinstance(part, str | int | float) for part in value.values()):
        raise DataSetError(f'{at}: "metadata.filter" must be an object of single values, not {value!r}')
    return value
