"""A collection in a private local Bedrock that is kept for the next run, or as files for any knowledge base."""

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
from urllib.parse import quote

from botocore.config import Config

from evaluation.dataset import DataSet, Document, EvaluationError
from local_bedrock.creation import create_knowledge_base
from ragstack_local.show import display
from ragstack_local.stack.processes import Child, held_interrupts
from ragstack_local.target.connection import local_client, local_environment

FORM: Final = 1
"""Version of the ingested form; a new number is a new index."""

DOCUMENTS_PER_CALL: Final = 10
"""Source: bedrock-agent, KnowledgeBaseDocuments, and DocumentIdentifiers of GetKnowledgeBaseDocuments."""

LONGEST_LIST: Final = 10
LONGEST_VALUE: Final = 2048
"""Source: bedrock-agent, MetadataAttributeValueStringListValueList and StringValue."""

PAGE: Final = 1000
"""Source: bedrock-agent, MaxResults."""

CALL_SECONDS: Final = 120.0
START_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.25
WAITING: Final = ("STARTING", "PENDING", "IN_PROGRESS")
FAILED: Final = ("FAILED", "it was not ingested")
KNOWLEDGE_BASE: Final = "evaluation"

NO_SERVICE: Final = "http://127.0.0.1:9"
"""Nothing listens there."""

SIDECAR_SUFFIX: Final = ".metadata.json"
"""Source: Amazon Bedrock User Guide, metadata files of documents."""

_URL: Final = re.compile(r"Local Bedrock on (http://\S+), data in ")

Progress = Callable[[int, int], None]
"""Is told how many of how many documents are searchable."""


@dataclass(frozen=True)
class Indexing:
    """How documents are indexed.

    Attributes:
        embedding: As `ragstack bedrock` takes it.
        contextual_headers: Whether chunks are indexed with their document's name, title and headings.
    """

    embedding: str
    contextual_headers: bool = True

    def folder(self, cache: Path, data: DataSet) -> Path:
        """Return where the index of a collection is kept: each collection and option has its own folder."""
        parts = json.dumps([FORM, data.digest, _absolute(self.embedding), self.contextual_headers])
        return cache / f"{data.name}-{sha256(parts.encode()).hexdigest()[:16]}"


@dataclass(frozen=True)
class Index:
    """A collection that can be searched."""

    url: str
    knowledge_base_id: str
    data_source_id: str
    folder: Path

    def client(self, service: str) -> Any:
        """Make an unmodified boto3 client."""
        return client_of(self.url, service)


def client_of(url: str, service: str) -> Any:
    """Make an unmodified boto3 client of a private local Bedrock."""
    return local_client(service, url, Config(read_timeout=CALL_SECONDS, retries={"mode": "standard"}))


@contextmanager
def serving(
    data: DataSet,
    indexing: Indexing,
    cache: Path,
    progress: Progress = lambda *_: None,
    cosine_share: float | None = None,
) -> Iterator[Index]:
    """Start a local Bedrock with the collection, ingest missing documents, and stop it.

    It searches with the embedding's own share of the cosine if there is no other.

    Ingested documents stay in the cache, also if the run is interrupted.

    Raises:
        EvaluationError: Every document failed.
        StackError: The local Bedrock does not start, or ended.
    """
    folder = indexing.folder(cache, data)
    arguments = ["--embedding", _absolute(indexing.embedding)]
    arguments += [] if cosine_share is None else ["--cosine-share", str(cosine_share)]
    arguments += [] if indexing.contextual_headers else ["--no-contextual-headers"]
    # Embeddings of Amazon Bedrock need the user's own AWS settings; nothing else may depend on them.
    uses_aws = indexing.embedding.startswith("bedrock:")
    environment = dict(os.environ) if uses_aws else local_environment(NO_SERVICE)
    with running(folder, arguments, environment) as (child, url):
        index = _opened(url, folder)
        _fill(index, data, child, progress)
        yield index


@contextmanager
def running(folder: Path, arguments: Sequence[str], environment: Mapping[str, str]) -> Iterator[tuple[Child, str]]:
    """Start a private local Bedrock on a free port, yield its process and URL, and stop it.

    Raises:
        StackError: It does not start.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "local_bedrock", "--port", "0", "--data-dir", str(folder), *arguments]
    with held_interrupts():
        child = Child.start("The local Bedrock", command, environment, folder / "bedrock.log", ends_with_parent=True)
    try:
        yield child, _announced_url(child)
    finally:
        child.stop()


def sources(documents: Mapping[str, Document]) -> dict[str, Document]:
    """Return the documents that a knowledge base accepts: those with text."""
    return {name: document for name, document in documents.items() if document.markdown.strip()}


def write_files(data: DataSet, folder: Path) -> int:
    """Write each document with any text as ``ID.md``, with a sidecar of its attributes; ids are URL-quoted.

    Searches that return such files are judged by their names, whatever bucket they are in.

    Returns:
        How many documents were written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = sources(data.documents)
    for name, document in written.items():
        file = folder / f"{quote(name, safe='')}.md"
        file.write_text(document.markdown, encoding="utf-8")
        attributes = {entry["key"]: {"value": entry["value"]} for entry in inline_attributes(document.metadata)}
        if attributes:
            sidecar = json.dumps({"metadataAttributes": attributes}, ensure_ascii=False)
            file.with_name(file.name + SIDECAR_SUFFIX).write_text(sidecar, encoding="utf-8")
    return len(written)


def inline_attributes(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the metadata as inline attributes: values of other types are left out, and long lists are cut."""
    typed = ((key, _typed(value)) for key, value in metadata.items())
    return [{"key": key, "value": value} for key, value in typed if value is not None]


def _announced_url(child: Child) -> str:
    child.wait_until(lambda: _URL.search(child.log.read_text(errors="replace")) is not None, START_SECONDS)
    announced = _URL.search(child.log.read_text(errors="replace"))
    assert announced is not None
    return announced[1]


def _opened(url: str, folder: Path) -> Index:
    """Find the knowledge base in the folder, or make it."""
    agent = Index(url, "", "", folder).client("bedrock-agent")
    bases = [base for base in agent.list_knowledge_bases()["knowledgeBaseSummaries"] if base["name"] == KNOWLEDGE_BASE]
    identifier = bases[0]["knowledgeBaseId"] if bases else create_knowledge_base(agent, KNOWLEDGE_BASE)
    found = agent.list_data_sources(knowledgeBaseId=identifier)["dataSourceSummaries"]
    if not found:
        made = agent.create_data_source(
            knowledgeBaseId=identifier, name=KNOWLEDGE_BASE, dataSourceConfiguration={"type": "CUSTOM"}
        )
        found = [made["dataSource"]]
    return Index(url, identifier, found[0]["dataSourceId"], folder)


def _fill(index: Index, data: DataSet, child: Child, progress: Progress) -> None:
    agent = index.client("bedrock-agent")
    wanted = sources(data.documents)
    there = _statuses(agent, index)
    missing = [document for name, document in wanted.items() if there.get(name, FAILED)[0] == "FAILED"]
    for first in range(0, len(missing), DOCUMENTS_PER_CALL):
        some = missing[first : first + DOCUMENTS_PER_CALL]
        agent.ingest_knowledge_base_documents(
            knowledgeBaseId=index.knowledge_base_id,
            dataSourceId=index.data_source_id,
            documents=[_submitted(document) for document in some],
        )
    while True:
        there = _statuses(agent, index)
        failed = {name: there.get(name, FAILED) for name in wanted if there.get(name, FAILED)[0] != "INDEXED"}
        progress(len(wanted) - len(failed), len(wanted))
        if not any(status in WAITING for status, _ in there.values()):
            break
        child.require_alive()
        time.sleep(POLL_SECONDS)
    if failed:
        reasons = "; ".join(f"{name}: {status}, {reason}" for name, (status, reason) in list(failed.items())[:3])
        message = f"{len(failed)} of {len(wanted)} documents cannot be searched, and count as not found: {reasons}"
        if len(failed) == len(wanted):
            raise EvaluationError(message)
        display.errors.print(message, style="yellow", markup=False, soft_wrap=True)


def _statuses(agent: Any, index: Index) -> dict[str, tuple[str, str | None]]:
    """Return the status and the reason of each document."""
    ids = {"knowledgeBaseId": index.knowledge_base_id, "dataSourceId": index.data_source_id, "maxResults": PAGE}
    pages = agent.get_paginator("list_knowledge_base_documents").paginate(**ids)
    details = (detail for page in pages for detail in page["documentDetails"])
    return {each["identifier"]["custom"]["id"]: (each["status"], each.get("statusReason")) for each in details}


def _submitted(document: Document) -> dict[str, Any]:
    content = {
        "dataSourceType": "CUSTOM",
        "custom": {
            "customDocumentIdentifier": {"id": document.id},
            "sourceType": "IN_LINE",
            "inlineContent": {"type": "TEXT", "textContent": {"data": document.markdown}},
        },
    }
    attributes = inline_attributes(document.metadata)
    metadata = {"metadata": {"type": "IN_LINE_ATTRIBUTE", "inlineAttributes": attributes}} if attributes else {}
    return {"content": content, **metadata}


def _typed(value: Any) -> dict[str, Any] | None:
    match value:
        case bool():
            return {"type": "BOOLEAN", "booleanValue": value}
        case int() | float():
            return {"type": "NUMBER", "numberValue": value}
        case str() if value:
            return {"type": "STRING", "stringValue": value[:LONGEST_VALUE]}
        case list() if _strings(value):
            return {"type": "STRING_LIST", "stringListValue": _strings(value)}
    return None


def _strings(values: Sequence[Any]) -> list[str]:
    return [value[:LONGEST_VALUE] for value in values if isinstance(value, str) and value][:LONGEST_LIST]


def _absolute(embedding: str) -> str:
    """Make a model's folder independent of the working directory."""
    kind, _, folder = embedding.partition(":")
    return f"{kind}:{Path(folder).resolve()}" if kind == "onnx" else embedding
