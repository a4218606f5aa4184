"""The context of every operation."""

import secrets
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import apsw

from local_bedrock.answering import Answering
from local_bedrock.http.downloads import Downloads
from local_bedrock.http.errors import InvalidRequest
from local_bedrock.ingestion.synchronisation import Synchronisation
from local_bedrock.ingestion.workers import Ingestion
from local_bedrock.operations.paging import Snapshots
from local_bedrock.options import Options
from local_bedrock.processes.embedding_processes import Embeddings
from local_bedrock.reading.sources import ObjectStore
from local_bedrock.store import resources
from local_bedrock.store.database import Database
from local_bedrock.store.resources import DataSource, StoredKnowledgeBase
from ragstack_common.embedding import Embedding

Request = Mapping[str, Any]
Answer = dict[str, Any]


def new_id() -> str:
    """Return a random identifier of ten letters and digits, in upper case as on AWS."""
    return "".join(secrets.choice(string.ascii_uppercase + string.digits) for _ in range(10))


@dataclass(frozen=True)
class Context:
    """The parts of a running local Bedrock.

    Attributes:
        clock: Seconds since 1970.
        snapshots: Results of requests with further pages.
        downloads: Contents behind URLs.
        origin: The scheme and the host by which the client addresses this server.
    """

    options: Options
    database: Database
    embeddings: Embeddings
    ingestion: Ingestion
    synchronisation: Synchronisation
    objects: ObjectStore
    answering: Answering
    clock: Callable[[], float]
    snapshots: Snapshots
    downloads: Downloads
    origin: str = ""

    @property
    def embedding(self) -> Embedding:
        """The embedding of new knowledge bases."""
        return self.embeddings.chosen

    def cosine_share(self, embedding: Embedding) -> float:
        """Return the share of the cosine in the score of HYBRID, 0 to 1."""
        chosen = self.options.cosine_share
        return embedding.cosine_share if chosen is None else chosen


def required_member(given: Request, what: str, needed: str, *others: str) -> Any:
    """Return the member that the type of a structure requires.

    Args:
        given: The structure.
        what: Names the structure and its type, for the message.
        needed: The name of the member.
        others: The members that belong to other types.

    Raises:
        InvalidRequest: The member is missing, or there is one of the others.
    """
    if needed not in given:
        raise InvalidRequest(f"{what} needs {needed}")
    if present := [name for name in others if name in given]:
        raise InvalidRequest(f"{what} cannot have {' or '.join(present)}")
    return given[needed]


def refuse_unsupported(given: Request, *names: str) -> None:
    """Refuse members that the local Bedrock doesn't support.

    Raises:
        InvalidRequest: The structure has one of them, and it isn't empty.
    """
    for name in names:
        if given.get(name):
            raise InvalidRequest(f"The local Bedrock does not support {name}: omit it")


def active_knowledge_base(connection: apsw.Connection, knowledge_base_id: str) -> StoredKnowledgeBase:
    """Return an ACTIVE knowledge base.

    Raises:
        NotFound: It doesn't exist.
        InvalidRequest: It isn't ACTIVE.
    """
    found = resources.find_knowledge_base(connection, knowledge_base_id)
    if found.status != "ACTIVE":
        raise InvalidRequest(f"The knowledge base {knowledge_base_id} is in status {found.status}")
    return found


def requested_data_source(connection: apsw.Connection, request: Request) -> DataSource:
    """Return the data source of a request.

    Raises:
        NotFound: The knowledge base or data source doesn't exist.
    """
    return resources.find_data_source(connection, request["knowledgeBaseId"], request["dataSourceId"])


def available_data_source(connection: apsw.Connection, request: Request) -> DataSource:
    """Return the AVAILABLE data source of a request.

    Raises:
        NotFound: The knowledge base or data source doesn't exist.
        InvalidRequest: The knowledge base isn't ACTIVE, or the data source isn't AVAILABLE.
    """
    active_knowledge_base(connection, request["knowledgeBaseId"])
    found = requested_data_source(connection, request)
    if found.status != "AVAILABLE":
        raise InvalidRequest(f"The data source {found.id} is in status {found.status}")
    return found
