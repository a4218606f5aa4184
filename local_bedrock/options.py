"""The settings of the local Bedrock."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from local_bedrock.limits.fault_injection import FaultRule
from local_bedrock.limits.quotas import Quotas
from ragstack_common.settings import model_cache
from ragstack_common.settings.names import DEFAULT_EMBEDDING

LOCAL: Final = "127.0.0.1"
DEFAULT_PORT: Final = 4567

EMBEDDING_HELP: Final = (
    "The embedding: hashed (no model), minilm or granite (after `ragstack model add`), onnx:FOLDER, fastembed or"
    " fastembed:MODEL, openai:URL#MODEL, bedrock:MODEL."
)
EMBEDDING_CHOICE_HELP: Final = (
    f"{EMBEDDING_HELP} auto: minilm if it was added, otherwise hashed. Another one than before embeds the stored"
    " texts again."
)


def chosen_embedding(choice: str | None) -> str:
    """Return the embedding of a choice; without one, the default."""
    return model_cache.chosen(choice) if choice else model_cache.default_embedding()


@dataclass(frozen=True)
class Pace:
    """Minimum durations, to imitate the pace of AWS; 0 is as fast as possible.

    Attributes:
        creation_seconds: A knowledge base, from CREATING to ACTIVE.
        indexing_seconds: A document, from STARTING through PENDING and IN_PROGRESS to its final status.
        deletion_seconds: A document, from DELETING through DELETE_IN_PROGRESS to its removal.
    """

    creation_seconds: float = 0.0
    indexing_seconds: float = 0.0
    deletion_seconds: float = 0.0


@dataclass(frozen=True)
class Options:
    """The settings of one running local Bedrock.

    Attributes:
        data_dir: Folder of the index, created if missing; used by one process at a time.
        replace_index: Start an empty index if the present one cannot be used, and keep that one in another folder.
        port: 0 chooses a free port.
        embedding: Recorded with each knowledge base; those of another one are embedded again.
        cosine_share: Share of the cosine in the score of HYBRID, 0 to 1; None is the embedding's own.
        feedback: Whether HYBRID searches again with a vector nearer to those of the first results.
        scope_attribute: The attribute of access labels: HYBRID counts words in the documents whose labels the filter
            admits, and nowhere else. None counts those of all documents, as OpenSearch does.
        s3_endpoint: None uses boto3's own settings.
        contextual_headers: Index every chunk together with its document's title and headings.
        llm_url: Base URL of an OpenAI-compatible server that writes answers; None quotes the documents instead.
        llm_model: Model of that server; None uses the first model that it lists.
        quotas: None for no limits.
        admin: Serve the administrative routes below ``/_ragstack/``.
        origins: Web pages that may use the server, such as ``http://localhost:5173``.
        hosts: Allowed host names, in addition to those of the loopback interface and *host*.
    """

    data_dir: Path
    replace_index: bool = False
    host: str = LOCAL
    port: int = 0
    embedding: str = DEFAULT_EMBEDDING
    cosine_share: float | None = None
    feedback: bool = True
    scope_attribute: str | None = None
    s3_endpoint: str | None = None
    contextual_headers: bool = True
    pace: Pace = Pace()
    llm_url: str | None = field(default=None, repr=False)  # it may contain a password
    llm_model: str | None = None
    llm_api_key: str | None = field(default=None, repr=False)
    quotas: Quotas | None = None
    faults: tuple[FaultRule, ...] = ()
    admin: bool = False
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
