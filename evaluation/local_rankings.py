"""The rankings of the local Bedrock before they are fused, read from its data folder in this process."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluation.errors import EvaluationError
from evaluation.index import Index, Indexing
from local_bedrock.retrieval.ranking import Search, rankings
from local_bedrock.store.database import Database, DataFolderError
from ragstack_common import embedding, filters
from ragstack_common.embedding import Embedding

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LocalRankings:
    """A data folder that no local Bedrock uses at the moment.

    Attributes:
        embedding: What the queries are embedded with.
        database: Of the folder.
        knowledge_base_id: What is searched.
        names: The document of every chunk.
    """

    embedding: Embedding
    database: Database
    knowledge_base_id: str
    names: Mapping[int, str]

    @classmethod
    @contextmanager
    def of(cls, indexing: Indexing, index: Index) -> Iterator["LocalRankings"]:
        """Open the folder of an index.

        Raises:
            EvaluationError: A local Bedrock uses it.
            EmbeddingError: The embedding cannot be had.
        """
        model = embedding.load(indexing.embedding, index.folder)
        try:
            database = Database(index.folder)
        except DataFolderError as error:
            model.close()
            raise EvaluationError(str(error)) from error
        try:
            with database.read() as view:
                chunks = "SELECT c.id, d.name FROM chunk c JOIN document d ON d.id = c.document_id"
                names = {int(row[0]): str(row[1]) for row in view.connection.execute(chunks)}
            yield cls(model, database, index.knowledge_base_id, names)
        finally:
            database.close()
            model.close()

    def of_query(self, text: str, condition: Mapping[str, Any] | None = None) -> tuple[Ids, Ids]:
        """Return the chunks that a query finds, best first: by BM25, and by vector."""
        parsed = None if condition is None else filters.parse(condition)
        search = Search(text, self.embedding.embed_query(text), hybrid=True, condition=parsed)
        with self.database.read(self.knowledge_base_id) as view:
            by_words, by_vector = rankings(view, self.knowledge_base_id, search)
        return by_words, by_vector.chunks

    def by_words(self, text: str, condition: Mapping[str, Any] | None = None) -> Ids:
        """Return the chunks that a query finds by BM25 alone, best first; nothing is embedded."""
        parsed = None if condition is None else filters.parse(condition)
        nothing = np.zeros(self.embedding.dimension, dtype=np.float32)
        with self.database.read(self.knowledge_base_id) as view:
            return rankings(view, self.knowledge_base_id, Search(text, nothing, hybrid=True, condition=parsed))[0]

    def documents(self, chunks: Ids) -> list[str]:
        """Name the documents of chunks, each once, at its best place."""
        return list(dict.fromkeys(self.names[chunk] for chunk in chunks.tolist()))
