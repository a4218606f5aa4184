"""Checks of access control lists in managed knowledge bases, and of the contents of documents."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import httpx2
from botocore.exceptions import ClientError

from ragstack_common.ingestion.requests import CUSTOM, document_identifier, text_document
from ragstack_local.certify import documents, fixtures
from ragstack_local.certify.check import INVALID, Json, Source, Topic
from ragstack_local.certify.services.managed import USED_BY
from ragstack_local.certify.services.managed_fixtures import (
    JOB_SECONDS,
    changed,
    configuration,
    find,
    ingested,
    managed,
    names,
    prefixed,
    unreadable,
)
from ragstack_local.certify.site import Site, error_code

ACCESS: Final = "local_bedrock.search.access"
LISTS: Final = "local_bedrock.reading.access_control"
CONTENT: Final = "local_bedrock.operations.document_content"

ON: Final = Topic("managed", USED_BY, CONTENT)

DOWNLOAD_SECONDS: Final = 60.0


@ON.check(
    "access_without_user",
    "A search without userContext returns nothing from a data source with access control lists",
    Source.DOCUMENTATION,
    [],
    held_in=ACCESS,
)
def _access_without_user(site: Site) -> Json:
    return _listed(site)


@ON.check(
    "access_of_user",
    "A search with userContext returns only documents that the user may read, and DENY wins over ALLOW",
    Source.DOCUMENTATION,
    ["readable"],
    held_in=ACCESS,
)
def _access_of_user(site: Site) -> Json:
    return _listed(site, documents.READER)


@ON.check(
    "access_of_others",
    "A search with the userContext of an unlisted user returns nothing from a data source with access control lists",
    Source.DOCUMENTATION,
    [],
    held_in=ACCESS,
)
def _access_of_others(site: Site) -> Json:
    return _listed(site, documents.OTHER)


@ON.check(
    "user_case",
    "User ids in access control lists are compared exactly, including case",
    Source.GUESS,
    [],
    held_in=ACCESS,
)
def _user_case(site: Site) -> Json:
    return _listed(site, documents.READER.upper())


def _listed(site: Site, user: str | None = None) -> Sequence[str]:
    found = names(site, documents.LISTED_WORD, documents.LISTED_PREFIX, user=user)
    keys = (documents.READABLE_KEY, documents.DENIED_KEY, documents.UNLISTED_KEY)
    return [name.removesuffix(".md") for name in found if f"{documents.LISTED_PREFIX}{name}" in keys]


@ON.check(
    "acl_prefixes",
    "All entries whose prefix matches a document apply to it, and DENY wins over ALLOW",
    Source.GUESS,
    {"reader": ["both.md", "open.md"], "other": ["both.md"]},
    held_in=LISTS,
    seconds=JOB_SECONDS,
)
def _acl_prefixes(site: Site) -> Json:
    connector = fixtures.made(site, prefixed, managed)
    connector.source.ended_job(connector.job)

    def seen(user: str, expected: Sequence[str]) -> Sequence[str]:
        return names(site, documents.SHARED_WORD, documents.SHARED_PREFIX, user=user, expected=expected)

    return {"reader": seen(documents.READER, ["both.md", "open.md"]), "other": seen(documents.OTHER, ["both.md"])}


@ON.check(
    "acl_unreadable",
    "A job fails if its global access control file cannot be read",
    Source.GUESS,
    "FAILED",
    held_in="local_bedrock.ingestion.synchronisation",
    seconds=JOB_SECONDS,
)
def _acl_unreadable(site: Site) -> Json:
    connector = fixtures.made(site, unreadable, managed)
    return connector.source.ended_job(connector.job)["status"]


@ON.check(
    "acl_lost",
    "A document is no longer found once a job cannot read its access control list",
    Source.GUESS,
    {"before": True, "after": False},
    held_in="local_bedrock.ingestion.preparation",
    seconds=JOB_SECONDS,
)
def _acl_lost(site: Site) -> Json:
    was_listed, name = site.shared(changed).was_listed, documents.LOST_KEY.removeprefix(documents.LISTED_PREFIX)
    expected = [documents.READABLE_KEY.removeprefix(documents.LISTED_PREFIX)]
    found = names(site, documents.LISTED_WORD, documents.LISTED_PREFIX, user=documents.READER, expected=expected)
    return {"before": was_listed, "after": name in found}


def people(site: Site) -> fixtures.DataSource:
    """The connector CUSTOM with access control lists."""
    given = configuration("CUSTOM", aclEnabled=True)
    source = fixtures.create_source(site, site.shared(managed).id, "people", given)
    keys = [f"{documents.PEOPLE_PREFIX}{name}" for name in ("listed", "unlisted")]
    texts = [text_document(key, f"The {documents.PEOPLE_WORD} of {key} keeps the accounts.") for key in keys]
    source.ingest([_with_list(texts[0]), texts[1]])
    source.settled([document_identifier(key, CUSTOM) for key in keys])
    return source


def _with_list(document: Mapping[str, Any]) -> Mapping[str, Any]:
    entry = {"name": documents.READER, "type": "USER", "access": "ALLOW"}
    return {**document, "metadata": {"type": "IN_LINE_ATTRIBUTE", "accessControlList": [entry]}}


@ON.check(
    "inline_lists",
    "With access control, the CUSTOM connector shows a document to the users listed in its request, or to nobody",
    Source.GUESS,
    {"reader": ["listed"], "other": [], "nobody": []},
    held_in=LISTS,
    seconds=JOB_SECONDS,
)
def _inline_lists(site: Site) -> Json:
    fixtures.made(site, people, managed)
    word, prefix = documents.PEOPLE_WORD, documents.PEOPLE_PREFIX
    return {
        "reader": names(site, word, prefix, user=documents.READER, expected=["listed"]),
        "other": names(site, word, prefix, user=documents.OTHER),
        "nobody": names(site, word, prefix),
    }


@ON.check(
    "inline_list_without_acl",
    "Direct ingestion with an access control list is refused by a data source without access control",
    Source.GUESS,
    INVALID,
    held_in="local_bedrock.operations.ingestion",
)
def _inline_list_without_acl(site: Site) -> Json:
    product, document = site.shared(managed).product, _with_list(text_document("listed", "Note."))
    return error_code(lambda: product.ingest([document]))


@ON.check(
    "access_check",
    "CheckIngestedDocumentAcl reports whether a user may read a document",
    Source.MODEL,
    {"reader": True, "other": False},
)
def _access_check(site: Site) -> Json:
    ids = _readable(site)
    return {"reader": _may(site, ids, documents.READER), "other": _may(site, ids, documents.OTHER)}


@ON.check(
    "access_check_open",
    "Without access control, every user may read and find a document, and its access control list is empty",
    Source.GUESS,
    {"other": True, "found": documents.EVERY_ANIMAL, "list": {}},
)
def _access_check_open(site: Site) -> Json:
    ids = _of_product(site, documents.FIRST_KEY)
    return {
        "other": _may(site, ids, documents.OTHER),
        "found": documents.letters(find(site, documents.ANIMAL_QUERY, user=documents.OTHER)),
        "list": site.client("bedrock-agent-runtime").get_ingested_document_acl(**ids)["documentAcl"],
    }


@ON.check(
    "acl_types",
    "GetIngestedDocumentAcl returns the users of a list in one condition, with the type DATA_SOURCE",
    Source.GUESS,
    {"allow": [[["the reader", "DATA_SOURCE"]]], "deny": []},
)
def _acl_types(site: Site) -> Json:
    found = site.client("bedrock-agent-runtime").get_ingested_document_acl(**_readable(site))["documentAcl"]

    def conditions(kind: str) -> Json:
        return [
            [
                ["the reader" if user["id"] == documents.READER else "another id", user["type"]]
                for user in condition.get("users", [])
            ]
            for condition in found.get(kind, {}).get("conditions", [])
        ]

    return {"allow": conditions("allowList"), "deny": conditions("denyList")}


def _readable(site: Site) -> dict[str, str]:
    """Return the ids of a document that the reader may see, as requests take them."""
    results = find(site, documents.LISTED_WORD, user=documents.READER)
    (id_,) = {each["documentId"] for each in results if documents.uri_of(each).endswith(documents.READABLE_KEY)}
    return {**site.shared(managed).listed.ids, "documentId": id_}


def _of_product(site: Site, key: str) -> dict[str, str]:
    site.shared(ingested)
    return {**site.shared(managed).product.ids, "documentId": fixtures.document_uri(site, key, CUSTOM)}


def _may(site: Site, ids: Mapping[str, str], user: str) -> Json:
    client = site.client("bedrock-agent-runtime")
    return client.check_ingested_document_acl(**ids, userContext={"userId": user})["hasAccess"]


@ON.check(
    "content",
    "GetDocumentContent returns a URL of the file",
    Source.MODEL,
    {"members": ["documentContentLength", "mimeType", "presignedUrl"], "length": "that of the file"},
)
def _content(site: Site) -> Json:
    answer = _content_of(site, _of_product(site, documents.FIRST_KEY))
    is_that = answer.get("documentContentLength") == len(documents.OBJECTS[documents.FIRST_KEY])
    return {
        "members": sorted(name for name in answer if name != "ResponseMetadata"),
        "length": "that of the file" if is_that else "another one",
    }


@ON.check(
    "content_changed",
    "The content of an object that has changed since its ingestion is not available",
    Source.GUESS,
    {"error": "ResourceNotFoundException"},
)
def _content_changed(site: Site) -> Json:
    s3, place = site.client("s3"), {"Bucket": fixtures.bucket_name(site, CUSTOM), "Key": documents.ASCII_KEY}
    ids, before = _of_product(site, documents.ASCII_KEY), documents.OBJECTS[documents.ASCII_KEY]
    s3.put_object(**place, Body=before + b"It is dry at noon.\n")
    try:
        found = _download(site, _content_of(site, ids)["presignedUrl"]).content
    finally:
        s3.put_object(**place, Body=before)
    return "as it was ingested" if found == before else "as it is now"


@ON.check(
    "content_extracted",
    "The output format EXTRACTED of GetDocumentContent is JSON with the document's text as its only member",
    Source.GUESS,
    {"mimeType": "application/json", "members": ["text"], "text": True},
)
def _content_extracted(site: Site) -> Json:
    answer = _content_of(site, _of_product(site, documents.FIRST_KEY), outputFormat="EXTRACTED")
    text = _download(site, answer["presignedUrl"]).text
    return {
        "mimeType": answer["mimeType"],
        "members": _members_of(text),
        "text": "cheetah" in text,
    }


@ON.check(
    "content_denied",
    "GetDocumentContent refuses users who may not read the document",
    Source.MODEL,
    {"error": "AccessDeniedException"},
)
def _content_denied(site: Site) -> Json:
    ids = _readable(site)
    _content_of(site, ids, userContext={"userId": documents.READER})  # the caller has the right
    try:
        _content_of(site, ids, userContext={"userId": documents.OTHER})
    except ClientError as error:
        return {"error": error.response["Error"]["Code"]}
    return "accepted"


def _content_of(site: Site, ids: Mapping[str, str], **more: Json) -> Mapping[str, Json]:
    answer: Mapping[str, Json] = site.client("bedrock-agent-runtime").get_document_content(**ids, **more)
    return answer


def _download(site: Site, url: str) -> httpx2.Response:
    return httpx2.get(url, trust_env=site.is_aws, timeout=DOWNLOAD_SECONDS).raise_for_status()


def _members_of(text: str) -> Json:
    """Return the names of the members of a JSON object, or another form."""
    try:
        found = json.loads(text)
    except ValueError:
        return "not JSON"
    return sorted(found) if isinstance(found, dict) else type(found).__name__


CHECKS: Final = tuple(ON.checks)
