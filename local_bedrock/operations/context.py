"""What every operation works with."""

import secrets
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import apsw

from local_bedrock.errors import InvalidRequest
from local_bedrock.generation.answering import Answering
from local_bedrock.ingestion.synchronisation import Synchronisation
from local_bedrock.ingestion.workers import Ingestion
from local_bedrock.operations.paging import Snapshots
from local_bedrock.options import Options
from local_bedrock.reading.sources import ObjectStore
from local_bedrock.store import resources
from local_bedrock.store.database import Database
from local_bedrock.store.resources import DataSource, KnowledgeBase
from ragstack_common.embedding import Embedding

Request = Mapping[str, Any]
Answer = dict[str, Any]

# Capitals only, as AWS makes them; SQLite's table names, which hold one, know no case.
_ID_LETTERS: Final = string.ascii_uppercase + string.digits
_ID_LENGTH: Final = 10


def new_id() -> str:
    """Make an identifier of ten letters and digits."""
    return "".join(secrets.choice(_ID_LETTERS) for _ in range(_ID_LENGTH))


@dataclass(frozen=True)
class Context:
    """The parts of a running local Bedrock.

    Attributes:
        options: What it was told when it started.
        clock: Seconds since 1970.
        snapshots: Results of requests that have further pages.
        make_id: Makes an identifier that is not in use.
    """

    options: Options
    database: Database
    embedding: Embedding
    ingestion: Ingestion
    synchronisation: Synchronisation
    objects: ObjectStore
    answering: Answering
    clock: Callable[[], float]
    snapshots: Snapshots
    make_id: Callable[[], str] = new_id


def active_knowledge_base(connection: apsw.Connection, knowledge_base_id: str) -> KnowledgeBase:
    """Return a knowledge base that can be worked with.

    Raises:
        NotFound: There is none of this id.
        InvalidRequest: It is being deleted.
    """
    found = resources.find_knowledge_base(connection, knowledge_base_id)
    if found.status != "ACTIVE":
        raise InvalidRequest(f"The knowledge base {knowledge_base_id} is in status {found.status}")
    return found


def available_data_source(connection: apsw.Connection, request: Request) -> DataSource:
    """Return the data source of a request, if it can be worked with.

    Raises:
        NotFound: There is no such knowledge base or data source.
        InvalidRequest: One of them is being deleted.
    """
    active_knowledge_base(connection, request["knowledgeBaseId"])
    found = resources.find_data_source(connection, request["knowledgeBaseId"], request["dataSourceId"])
    if found.status != "AVAILABLE":
        raise InvalidRequest(f"The data source {found.id} is in status {found.status}")
    return found
