"""Removal of what a run created, by its journal alone."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeAlias

from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.settings.names import CONNECTOR_SOURCE
from ragstack_local.certify.journal import REMOVED, Journal, Resource
from ragstack_local.certify.site import is_refused

Clients: TypeAlias = Callable[[str], Any]
"""Makes a client of a service."""

Remove: TypeAlias = Callable[[Clients, Resource], bool]
"""Removes a resource, if it exists; returns whether it is gone, or has still to be waited for."""

ATTEMPTS: Final = 180
"""A quarter of an hour on AWS for each resource."""
MAX_SECONDS: Final = 2700.0
"""After which no further attempt begins: an attempt to delete a stack takes minutes."""
WAIT_SECONDS: Final = 5.0


def remove_all(
    journal: Journal,
    kinds: Mapping[str, Remove],
    clients: Clients,
    *,
    show: Callable[[Resource], None] = lambda _: None,
    wait_seconds: float = WAIT_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> list[tuple[Resource, str]]:
    """Remove what a journal names, the last created first, and note each removal there.

    Returns:
        What could not be removed, and why; the journal keeps it for the next attempt.
    """
    left = []
    for resource in journal.remaining():
        show(resource)
        reason = _remove(resource, kinds[resource.kind], clients, wait_seconds, sleep)
        if reason is None:
            with suppress(OSError):  # on a full disk, the others are removed all the same
                journal.note(resource, REMOVED)
        else:
            left.append((resource, reason))
    return left


def _remove(
    resource: Resource, remove: Remove, clients: Clients, wait_seconds: float, sleep: Callable[[float], None]
) -> str | None:
    reason, end = "it is still being removed", time.monotonic() + MAX_SECONDS
    for attempt in range(ATTEMPTS):
        try:
            if remove(clients, resource):
                return None
        except (ClientError, BotoCoreError) as error:
            reason = " ".join(str(error).split())
            if isinstance(error, ClientError) and is_refused(error):
                return reason
        if time.monotonic() > end:
            break
        if attempt < ATTEMPTS - 1:
            sleep(wait_seconds)
    return reason


def is_missing(error: ClientError) -> bool:
    """Whether an error says that a resource does not exist."""
    code = error.response["Error"]["Code"]
    return code in ("404", "ValidationError") or code.startswith(("NoSuch", "NotFound", "ResourceNotFound"))


@contextmanager
def if_present() -> Iterator[None]:
    """Ignore the error of a call about something that does not exist."""
    try:
        yield
    except ClientError as error:
        if not is_missing(error):
            raise


def _bucket(clients: Clients, resource: Resource) -> bool:
    s3 = clients("s3")
    with if_present():
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=resource.name):
            found = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
            if found:
                keys = [{"Key": each["Key"], "VersionId": each["VersionId"]} for each in found]
                s3.delete_objects(Bucket=resource.name, Delete={"Objects": keys, "Quiet": True})
        s3.delete_bucket(Bucket=resource.name)
    return True


def _vector_index(clients: Clients, resource: Resource) -> bool:
    with if_present():
        clients("s3vectors").delete_index(vectorBucketName=resource.within, indexName=resource.name)
    return True


def _vector_bucket(clients: Clients, resource: Resource) -> bool:
    with if_present():
        clients("s3vectors").delete_vector_bucket(vectorBucketName=resource.name)
    return True


def _role(clients: Clients, resource: Resource) -> bool:
    iam = clients("iam")
    with if_present():
        for name in iam.list_role_policies(RoleName=resource.name)["PolicyNames"]:
            iam.delete_role_policy(RoleName=resource.name, PolicyName=name)
        iam.delete_role(RoleName=resource.name)
    return True


def _knowledge_base(clients: Clients, resource: Resource) -> bool:
    """Delete the data sources, then the knowledge base; both are gone some time later."""
    agent = clients("bedrock-agent")
    ids = [each["knowledgeBaseId"] for each in _knowledge_bases(agent) if each["name"] == resource.name]
    for id_ in ids:
        sources = agent.list_data_sources(knowledgeBaseId=id_)["dataSourceSummaries"]
        for source in sources:
            _delete_source(agent, id_, source)
        if not sources and agent.get_knowledge_base(knowledgeBaseId=id_)["knowledgeBase"]["status"] != "DELETING":
            with if_present():
                agent.delete_knowledge_base(knowledgeBaseId=id_)
    return not ids


def _knowledge_bases(agent: Any) -> Iterator[Any]:
    for page in agent.get_paginator("list_knowledge_bases").paginate():
        yield from page["knowledgeBaseSummaries"]


def _delete_source(agent: Any, knowledge_base: str, source: Mapping[str, Any]) -> None:
    ids = {"knowledgeBaseId": knowledge_base, "dataSourceId": source["dataSourceId"]}
    if source["status"] == "DELETING":
        return
    if source["status"] == "DELETE_UNSUCCESSFUL":
        found = agent.get_data_source(**ids)["dataSource"]
        if found["dataSourceConfiguration"]["type"] != CONNECTOR_SOURCE:  # its index is gone: leave the vectors alone
            kept = ("name", "dataSourceConfiguration", "vectorIngestionConfiguration")
            same = {name: found[name] for name in kept if name in found}
            agent.update_data_source(**ids, **same, dataDeletionPolicy="RETAIN")
    with if_present():
        agent.delete_data_source(**ids)


BUCKET: Final = "bucket"
VECTOR_BUCKET: Final = "vector bucket"
VECTOR_INDEX: Final = "vector index"
ROLE: Final = "role"
KNOWLEDGE_BASE: Final = "knowledge base"

KINDS: Final[Mapping[str, Remove]] = {
    BUCKET: _bucket,
    VECTOR_BUCKET: _vector_bucket,
    VECTOR_INDEX: _vector_index,
    ROLE: _role,
    KNOWLEDGE_BASE: _knowledge_base,
}
