"""What searches answered, query by query."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from evaluation.errors import EvaluationError


@dataclass(frozen=True)
class Answer:
    """What one query found.

    Attributes:
        documents: Best first, each once.
        milliseconds: Of the search.
    """

    documents: tuple[str, ...]
    milliseconds: float = 0.0


@dataclass(frozen=True)
class Run:
    """The answers of one setup.

    Attributes:
        label: What the setup is called.
        answers: By query, in the order of the data set.
    """

    label: str
    answers: Mapping[str, Answer]

    def trec_lines(self) -> Iterator[str]:
        """Yield the run in TREC's form. The scores say the order alone."""
        tag = self.label.replace(" ", "_")
        for query, answer in self.answers.items():
            for rank, document in enumerate(answer.documents, start=1):
                yield f"{query} Q0 {document.replace(' ', '%20')} {rank} {1 / rank:.6f} {tag}"


def documents_of(sources: Sequence[str], known: Mapping[str, object]) -> tuple[str, ...]:
    """Name the documents that sources are, each once, at its best place.

    A source is a document's id, or a file that is called like it: ``s3://bucket/folder/ID.md``, its special characters
    as in a URL.

    Raises:
        EvaluationError: A source is none of the collection's documents, so that nothing could be judged.
    """
    return tuple(dict.fromkeys(_document_of(source, known) for source in sources))


def _document_of(source: str, known: Mapping[str, object]) -> str:
    if source in known:
        return source
    name = source.rpartition("/")[2]
    for candidate in (unquote(name), unquote(name.rpartition(".")[0])):
        if candidate in known:
            return candidate
    raise EvaluationError(
        f"The source {source!r} is no document of the collection: search what holds its documents alone"
    )
