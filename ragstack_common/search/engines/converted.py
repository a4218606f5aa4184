"""Documents that a knowledge base knows by their converted text, under the names by which people know them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ragstack_common.core.artefacts import document_of, is_converted, text_of
from ragstack_common.core.uris import is_s3_uri
from ragstack_common.filters import And, Clause, Filter, Not, Operator, Or
from ragstack_common.reading import formats
from ragstack_common.settings.names import SOURCE_URI_KEY
from ragstack_common.text.positions import SECTION_KEY, SHEET_KEY, places_of_headings

SEVERAL: Final = {
    Operator.EQUALS: Operator.IN,
    Operator.IN: Operator.IN,
    Operator.NOT_EQUALS: Operator.NOT_IN,
    Operator.NOT_IN: Operator.NOT_IN,
}


def as_indexed(filter_: Filter) -> Filter:
    """Return a filter with the names by which the knowledge base can know the documents that it names."""
    match filter_:
        case And(members) | Or(members):
            return replace(filter_, members=tuple(map(as_indexed, members)))
        case Not(member):
            return Not(as_indexed(member))
        case Clause(operator, key, _) if key == SOURCE_URI_KEY and operator in SEVERAL:
            names = tuple(name for value in filter_.values for name in _names(str(value)))
            if len(names) == 1 and not isinstance(filter_.value, tuple):
                return Clause(operator, key, names[0])
            return Clause(SEVERAL[operator], key, names)
    return filter_


def _names(uri: str) -> tuple[str, ...]:
    return (uri, text_of(uri)) if is_s3_uri(uri) else (uri,)


def original(hit: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return one of the ``retrievalResults`` with the name of its document, and its page, slide or sheet."""
    metadata = hit.get("metadata") or {}
    location = hit.get("location") or {}
    uri = (location.get("s3Location") or {}).get("uri") or metadata.get(SOURCE_URI_KEY)
    if not isinstance(uri, str) or not is_converted(uri):
        return hit
    uri = document_of(uri)
    named = {**hit, "metadata": {**metadata, SOURCE_URI_KEY: uri}}
    if "s3Location" in location:
        named["location"] = {**location, "s3Location": {**location["s3Location"], "uri": uri}}
    return named


def placed(metadata: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the metadata of a chunk of converted text with its page, slide or sheet.

    Args:
        metadata: With the section that the knowledge base or its transformation added, if any.
        text: Of the chunk.
    """
    found = {**metadata}
    section = found.pop(SECTION_KEY, None)
    uri = found.get(SOURCE_URI_KEY)
    if isinstance(uri, str) and formats.has_sheets(uri):
        return found if section is None else {**found, SHEET_KEY: section}
    return found | places_of_headings(text, section if isinstance(section, str) else None)
