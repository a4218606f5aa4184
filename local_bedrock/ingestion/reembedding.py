"""Embeds the stored texts of knowledge bases again, after another embedding was chosen.

Until all chunks of a knowledge base have a new vector, searches and new documents use its earlier embedding. A restart
with the same choice continues.
"""

import logging
import threading
from dataclasses import dataclass, field
from typing import Final

from local_bedrock.processes.embedding_processes import Embeddings
from local_bedrock.store import replacements, resources
from local_bedrock.store.database import RETRY_SECONDS, Database, Transaction
from local_bedrock.store.documents import indexed_text
from ragstack_common.embedding import EmbeddingClosed, EmbeddingError

EMBEDDED_AT_ONCE: Final = 64

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Progress:
    """Chunks with a new vector, and all chunks of the knowledge bases that need one."""

    done: int
    total: int


@dataclass
class Reembedding:
    """One background thread.

    Attributes:
        progress: None if every knowledge base has the chosen embedding.
    """

    database: Database
    embeddings: Embeddings
    progress: Progress | None = None
    _closing: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread, if a knowledge base has another embedding."""
        chosen = self.embeddings.chosen.name
        with self.database.write() as change:
            replacements.begin(change, chosen)
            bases = self._outdated(change)
            counts = [replacements.progress(change.connection, base, chosen) for base in bases]
        if bases:
            self.progress = Progress(sum(done for done, _ in counts), sum(total for _, total in counts))
            self._thread = threading.Thread(target=self._run, name="reembedding", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop; the embeddings are closed already, which ends a call in progress."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join(3.0)

    def _outdated(self, change: Transaction) -> list[str]:
        bases = resources.knowledge_bases(change.connection)
        return [base.id for base in bases if base.embedding != self.embeddings.chosen.name]

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                with self.database.write() as change:
                    bases = self._outdated(change)
                    if not bases:
                        replacements.end(change)
                        self.progress = None
                        return
                self._replace(bases[0])
            except EmbeddingClosed:
                return
            except EmbeddingError as error:
                log.warning("The stored texts are not embedded yet: %s", error)
                self._closing.wait(RETRY_SECONDS)
            except Exception:
                if not self._closing.is_set():
                    log.exception("Embedding the stored texts failed and is repeated")
                self._closing.wait(RETRY_SECONDS)

    def _replace(self, knowledge_base_id: str) -> None:
        chosen, last = self.embeddings.chosen, 0
        while not self._closing.is_set():
            with self.database.read() as view:
                chunks = replacements.missing(view.connection, knowledge_base_id, chosen.name, EMBEDDED_AT_ONCE, last)
            if not chunks:
                break
            vectors = chosen.embed([indexed_text(chunk.header, chunk.text) for chunk in chunks])
            with self.database.write() as change:
                replacements.add(change, chosen.name, chunks, vectors)
            last = chunks[-1].id
            assert self.progress is not None
            done = self.progress.done + len(chunks)
            self.progress = Progress(done, max(done, self.progress.total))
        with self.database.write() as change:
            # Not yet if documents were indexed since the last look.
            replacements.finish(change, knowledge_base_id, chosen)
