"""What the local Bedrock can be told when it starts."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from local_bedrock.limits.fault_injection import FaultRule
from local_bedrock.limits.quotas import Quotas
from ragstack_common.config import DEFAULT_EMBEDDING

LOCAL: Final = "127.0.0.1"
DEFAULT_PORT: Final = 4567
EMBEDDING_HELP: Final = (
    "What texts are embedded with: hashed (needs no model and no download), fastembed or fastembed:MODEL,"
    " onnx:FOLDER, openai:URL#MODEL, bedrock:MODEL. Stored with the knowledge base."
)


@dataclass(frozen=True)
class Pace:
    """How long the service takes at least, as AWS takes its time; 0 is as fast as it goes.

    Attributes:
        creation_seconds: From CREATING to ACTIVE of a knowledge base.
        indexing_seconds: From STARTING over PENDING and IN_PROGRESS to the final state of a document.
        deletion_seconds: From DELETING over DELETE_IN_PROGRESS to the end of a document.
    """

    creation_seconds: float = 0.0
    indexing_seconds: float = 0.0
    deletion_seconds: float = 0.0


@dataclass(frozen=True)
class Options:
    """The settings of one running local Bedrock.

    Attributes:
        data_dir: Folder of the index, created if it is not there; one process at a time.
        host: Address to listen on.
        port: 0 takes a free one.
        embedding: What texts are embedded with; recorded with each knowledge base.
        s3_endpoint: Where documents are read; None leaves it to boto3's own settings.
        contextual_headers: Index every chunk together with its document's title and the headings over it.
        pace: How long the service takes at least.
        llm_url: Base URL of an OpenAI-compatible server that writes answers; None quotes the documents instead.
        llm_model: Model of that server; None takes the first that it lists.
        llm_api_key: For a server that asks for one.
        quotas: What callers may use; None is without limits.
        faults: What fails on purpose from the start.
        admin: Serve the administrative routes below ``/_ragstack/``.
        origins: Web pages that may use the server, such as ``http://localhost:5173``.
        hosts: Names that it may be called by, beside those of the loopback interface and *host*.
    """

    data_dir: Path
    host: str = LOCAL
    port: int = 0
    embedding: str = DEFAULT_EMBEDDING
    s3_endpoint: str | None = None
    contextual_headers: bool = True
    pace: Pace = Pace()
    llm_url: str | None = None
    llm_model: str | None = None
    llm_api_key: str | None = field(default=None, repr=False)
    quotas: Quotas | None = None
    faults: tuple[FaultRule, ...] = ()
    admin: bool = False
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
