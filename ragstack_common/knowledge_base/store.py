"""The store of a knowledge base: a folder, or memory where the folder cannot be had."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import chromadb

from ragstack_common.embedding import Embedding
from ragstack_common.errors import ServiceUnavailableError
from ragstack_common.retrieval.engines.chroma.connection import Connection, FolderConnection, MemoryConnection, quiet
from ragstack_common.retrieval.engines.chroma.creation import get_or_create
from ragstack_common.retrieval.engines.chroma.failures import translated

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Store:
    """An open store with the collection in it.

    Attributes:
        client: Chroma's.
        collection: Chroma's; it embeds the texts that it is given.
        connection: For searches, which see what others write.
        fallback: Why the store is in memory; None where it is the folder.
    """

    client: "ClientAPI"
    collection: "Collection"
    connection: Connection
    fallback: ServiceUnavailableError | None = None


def open_store(folder: Path, collection_name: str, embedding: Embedding | None) -> Store:
    """Open the folder, or memory where that fails; the collection is created where there is none.

    Raises:
        InvalidRequestError: The collection cannot have this name.
        EmbeddingError: The collection was made with another embedding.
    """
    place = f"the folder {folder}"
    try:
        with translated(place):
            client = chromadb.PersistentClient(folder, settings=quiet())
            return Store(client, get_or_create(client, collection_name, embedding), FolderConnection(folder))
    except ServiceUnavailableError as error:
        log.warning("The store cannot be opened, and the knowledge base is in memory and empty: %s", error)
        with translated("memory"):
            client = chromadb.EphemeralClient(settings=quiet())
            collection = get_or_create(client, collection_name, embedding)
        return Store(client, collection, MemoryConnection(client), error)
