"""A collection in a private local Bedrock that is kept for the next run."""

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import urllib3
from botocore.config import Config

from evaluation.dataset import DataSet, EvaluationError
from evaluation.setups import MANAGED_BASE, ON_S3_VECTORS, OPENSEARCH
from local_bedrock.creation import (
    create_custom_connector,
    create_knowledge_base,
    create_managed_knowledge_base,
    create_vector_index,
)
from ragstack_common.ingestion.requests import text_document
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_local.connection.connection import local_client, local_environment
from ragstack_local.show import display
from ragstack_local.stack.processes import Child, held_interrupts

FORM: Final = 3
"""Version of the ingested form; a new number is a new index."""

DOCUMENTS_PER_CALL: Final = 10
MAX_LIST: Final = 10
MAX_VALUE: Final = 2048
"""Source: bedrock-agent, KnowledgeBaseDocuments, MetadataAttributeValueStringListValueList and StringValue."""

NOT_INGESTED: Final = DocumentStatus("FAILED", "it was not ingested")
KNOWLEDGE_BASE: Final = "evaluation"

_URL: Final = re.compile(r"Local Bedrock on (http://\S+), data in ")

Counted = Callable[[int, int], None]
"""Receives the searchable and total counts of documents."""


@dataclass(frozen=True)
class Indexing:
    """How documents are indexed and searched.

    Attributes:
        embedding: In the form of `ragstack bedrock --embedding`.
        contextual_headers: Whether chunks are indexed with their document's name, title and headings.
        cosine_share: Share of the cosine in HYBRID searches; None for the embedding's own.
        feedback: Whether HYBRID searches again with the first results.
        store: The kind of knowledge base, as in a setup.
    """

    embedding: str
    contextual_headers: bool = True
    cosine_share: float | None = None
    feedback: bool = True
    store: str = OPENSEARCH

    def folder(self, cache: Path, data: DataSet) -> Path:
        """Return the folder of the index of a collection; each way to index has its own."""
        parts = json.dumps([FORM, data.digest, self.absolute_embedding, self.contextual_headers])
        return cache / f"{data.name}-{sha256(parts.encode()).hexdigest()[:16]}"

    @property
    def absolute_embedding(self) -> str:
        """The embedding, independent of the working directory."""
        kind, _, folder = self.embedding.partition(":")
        return f"{kind}:{Path(folder).resolve()}" if kind == "onnx" else self.embedding


@dataclass(frozen=True)
class Index:
    """A collection that can be searched."""

    url: str
    knowledge_base_id: str
    data_source_id: str

    def client(self, service: str) -> Any:
        """Make an unmodified boto3 client."""
        return make_client(self.url, service)


def make_client(url: str, service: str) -> Any:
    """Make an unmodified boto3 client of a private local Bedrock."""
    return local_client(service, url, Config(read_timeout=120.0, retries={"mode": "standard"}))


@contextmanager
def serving(data: DataSet, indexing: Indexing, cache: Path, counted: Counted = lambda *_: None) -> Iterator[Index]:
    """Start a local Bedrock with the collection, ingest missing documents, and stop it.

    Ingested documents stay in the cache, even if the run is interrupted.

    Raises:
        EvaluationError: Every document failed.
        StackError: The local Bedrock does not start, or ended.
    """
    arguments = ["--embedding", indexing.absolute_embedding]
    arguments += [] if indexing.cosine_share is None else ["--cosine-share", str(indexing.cosine_share)]
    arguments += [] if indexing.feedback else ["--no-feedback"]
    arguments += [] if indexing.contextual_headers else ["--no-contextual-headers"]
    # Embeddings of Amazon Bedrock need the user's own AWS settings; nothing else may depend on them.
    uses_aws = indexing.embedding.startswith("bedrock:")
    # Nothing listens at this port.
    environment = dict(os.environ) if uses_aws else local_environment("http://127.0.0.1:9")
    with running(indexing.folder(cache, data), arguments, environment) as (child, url):
        index = _opened(url, indexing.store)
        _fill(index, data, child, counted)
        _await_vectors(url, child)
        yield index


@contextmanager
def running(folder: Path, arguments: Sequence[str], environment: Mapping[str, str]) -> Iterator[tuple[Child, str]]:
    """Start a private local Bedrock on a free port, yield its process and URL, and stop it.

    Raises:
        StackError: It does not start.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-P", "-m", "local_bedrock", "--port", "0", "--data-dir", str(folder), *arguments]
    with held_interrupts():
        child = Child.start("The local Bedrock", command, environment, folder / "bedrock.log", ends_with_parent=True)
    try:
        child.wait_until(lambda: _URL.search(child.log.read_text(errors="replace")) is not None, 60.0)
        yield child, _URL.findall(child.log.read_text(errors="replace"))[0]
    finally:
        child.stop()


def _opened(url: str, store: str) -> Index:
    """Find the knowledge base in the folder, or make it; a further one finds its embeddings there."""
    agent = make_client(url, "bedrock-agent")
    name = KNOWLEDGE_BASE if store == OPENSEARCH else f"{KNOWLEDGE_BASE}-{store.replace('_', '-')}"
    bases = [base for base in agent.list_knowledge_bases()["knowledgeBaseSummaries"] if base["name"] == name]
    if bases:
        identifier = bases[0]["knowledgeBaseId"]
    elif store == MANAGED_BASE:
        identifier = create_managed_knowledge_base(agent, name)
    else:
        place = create_vector_index(make_client(url, "s3vectors"), name) if store == ON_S3_VECTORS else None
        identifier = create_knowledge_base(agent, name, place)
    found = agent.list_data_sources(knowledgeBaseId=identifier)["dataSourceSummaries"]
    if found:
        return Index(url, identifier, found[0]["dataSourceId"])
    if store == MANAGED_BASE:
        return Index(url, identifier, create_custom_connector(agent, identifier, KNOWLEDGE_BASE))
    made = agent.create_data_source(
        knowledgeBaseId=identifier, name=KNOWLEDGE_BASE, dataSourceConfiguration={"type": "CUSTOM"}
    )
    return Index(url, identifier, made["dataSource"]["dataSourceId"])


def _fill(index: Index, data: DataSet, child: Child, counted: Counted) -> None:
    agent = index.client("bedrock-agent")
    ids = {"knowledgeBaseId": index.knowledge_base_id, "dataSourceId": index.data_source_id}

    def statuses() -> dict[str, DocumentStatus]:
        pages = agent.get_paginator("list_knowledge_base_documents").paginate(**ids, maxResults=1000)
        details = (detail for page in pages for detail in page["documentDetails"])
        return {each["identifier"]["custom"]["id"]: DocumentStatus.of(each) for each in details}

    wanted = {name: document for name, document in data.documents.items() if document.markdown.strip()}
    ingested = statuses()
    missing = [
        text_document(name, document.markdown, _attributes(document.metadata))
        for name, document in wanted.items()
        if ingested.get(name, NOT_INGESTED) == "FAILED"
    ]
    for first in range(0, len(missing), DOCUMENTS_PER_CALL):
        agent.ingest_knowledge_base_documents(**ids, documents=missing[first : first + DOCUMENTS_PER_CALL])
    while True:
        ingested = statuses()
        failed = {name: ingested.get(name, NOT_INGESTED) for name in wanted if ingested.get(name) != "INDEXED"}
        counted(len(wanted) - len(failed), len(wanted))
        if not any(status in ("STARTING", "PENDING", "IN_PROGRESS") for status in ingested.values()):
            break
        child.require_alive()
        time.sleep(0.25)
    if failed:
        reasons = "; ".join(f"{name}: {status}, {status.reason}" for name, status in list(failed.items())[:3])
        message = f"{len(failed)} of {len(wanted)} documents cannot be searched, and count as not found: {reasons}"
        if len(failed) == len(wanted):
            raise EvaluationError(message)
        display.errors.print(message, style="yellow", markup=False, soft_wrap=True)


def _await_vectors(url: str, child: Child) -> None:
    """Wait until texts that another conversion of the model embedded have new vectors; until then, words decide."""
    while urllib3.request("GET", f"{url}/health").json()["reembedding"] is not None:
        child.require_alive()
        time.sleep(0.25)


def _attributes(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that the service accepts: values of other types are left out, and long ones are cut."""
    found: dict[str, Any] = {}
    for key, value in metadata.items():
        if isinstance(value, list):
            found[key] = [text[:MAX_VALUE] for text in value if isinstance(text, str) and text][:MAX_LIST]
        elif isinstance(value, str):
            found[key] = value[:MAX_VALUE]
        elif isinstance(value, int | float):
            found[key] = value
    return {key: value for key, value in found.items() if value not in ("", [])}
