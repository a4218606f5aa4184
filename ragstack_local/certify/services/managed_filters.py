"""Checks of filters in searches of managed knowledge bases."""

from typing import Final

from ragstack_common.ingestion.requests import CUSTOM
from ragstack_common.settings.names import MANAGED_DATA_SOURCE_KEY, MANAGED_SOURCE_URI_KEY, SOURCE_URI_KEY
from ragstack_local.certify import documents, fixtures
from ragstack_local.certify.check import INVALID, Json, Source, Topic
from ragstack_local.certify.services.filters import RETRIEVE, add_checks, clause
from ragstack_local.certify.services.managed_fixtures import find, managed
from ragstack_local.certify.site import Site

ON: Final = Topic(
    "managed-filters", "filters of searches (docs/SEARCH.md#filters)", "local_bedrock.operations.search_configuration"
)


def _filtered(filter_: Json, site: Site) -> Json:
    return documents.letters(find(site, documents.ANIMAL_QUERY, filter=filter_))


add_checks(
    ON,
    {
        **RETRIEVE,
        "starts_with": ("startsWith is refused", clause("startsWith", "name", "ch"), INVALID, Source.DOCUMENTATION),
        "string_contains": (
            "stringContains is refused",
            clause("stringContains", "name", "whal"),
            INVALID,
            Source.DOCUMENTATION,
        ),
    },
    _filtered,
)


@ON.check(
    "old_key",
    "In managed searches, a filter on x-amz-bedrock-kb-source-uri matches nothing",
    Source.THIRD_PARTY,
    "",
)
def _old_key(site: Site) -> Json:
    return _filtered(clause("equals", SOURCE_URI_KEY, fixtures.document_uri(site, documents.FIRST_KEY, CUSTOM)), site)


@ON.check("source_uri", "In managed searches, a filter on _source_uri finds the document", Source.GUESS, "c")
def _source_uri(site: Site) -> Json:
    return _filtered(
        clause("equals", MANAGED_SOURCE_URI_KEY, fixtures.document_uri(site, documents.FIRST_KEY, CUSTOM)), site
    )


@ON.check(
    "data_source_id",
    "In managed searches, a filter on _data_source_id finds the documents of that data source",
    Source.GUESS,
    "acnsw",
)
def _data_source_id(site: Site) -> Json:
    return _filtered(clause("equals", MANAGED_DATA_SOURCE_KEY, site.shared(managed).product.id), site)


@ON.check(
    "not_in_300",
    "notIn takes 300 values of _source_uri",
    Source.GUESS,
    "answ",
    used_by="documents that searches leave out (docs/SEARCH.md)",
)
def _not_in_300(site: Site) -> Json:
    others = [f"{documents.ANIMAL_PREFIX}none{number}.md" for number in range(299)]
    uris = [fixtures.document_uri(site, key, CUSTOM) for key in (*others, documents.FIRST_KEY)]
    return _filtered(clause("notIn", MANAGED_SOURCE_URI_KEY, uris), site)


CHECKS: Final = ON.checks
