"""The hits of Amazon Bedrock, in the form of Retrieve's ``retrievalResults``, as chunks."""

from collections.abc import Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final

from ragstack_common.search.engines import converted
from ragstack_common.search.models import UNNAMED_SOURCE, Ranking, RetrievedChunk, ranked_fields
from ragstack_common.settings.names import SOURCE_URI_KEY
from ragstack_common.text import contextual_headers

CHUNK_ID_KEY: Final = "x-amz-bedrock-kb-chunk-id"

CONTENT_DETAILS_KEY: Final = "ragstack_content_details"
"""Metadata key for the image, row, recording or film of a chunk that is not text, as sent by the service."""

ID_SEPARATOR: Final = "#"
"""Between the source and the service's own id in the id of a chunk."""


def to_chunk(hit: Mapping[str, Any], signals: Mapping[str, float] = MappingProxyType({})) -> RetrievedChunk:
    """Convert one of the ``retrievalResults``; a missing score counts as 0. *signals* are its parts, if known."""
    named = converted.original(hit)
    score = float(hit.get("score") or 0.0)
    content = hit.get("content") or {}
    metadata = named.get("metadata") or {}
    header, text = contextual_headers.split(_text(content))
    if named is not hit:
        metadata = converted.placed(metadata, text)
    content_type = content.get("type") or "TEXT"
    if content_type != "TEXT":
        metadata = {**metadata, CONTENT_DETAILS_KEY: {name: part for name, part in content.items() if name != "type"}}
    ranked = {"score": score, "metadata": metadata}
    if signals or not 0.0 <= score <= 1.0:
        ranked = ranked_fields(Ranking(base_score=score, score=score, signals={**signals}), metadata)
    return RetrievedChunk(
        content=text,
        source=document_uri(named) or _own_name(text, metadata),
        chunk_id=_chunk_id(metadata),
        context=header,
        content_type=content_type,
        location=named.get("location") or None,
        **ranked,
    )


def document_uri(hit: Mapping[str, Any]) -> str | None:
    """Return the S3 URI, URL or identifier of the document of a hit or result, or None."""
    location = hit.get("location") or {}
    for name, place in location.items():
        if name.endswith("Location") and isinstance(place, dict):
            uri = place.get("uri") or place.get("url") or place.get("id")
            if uri:
                return str(uri)
    uri = (hit.get("metadata") or {}).get(SOURCE_URI_KEY)
    return str(uri) if uri else None


def _text(content: Mapping[str, Any]) -> str:
    """Return the text of a content, the transcription of a recording, or the summary of a film."""
    audio, video = content.get("audio") or {}, content.get("video") or {}
    return content.get("text") or audio.get("transcription") or video.get("summary") or ""


def _chunk_id(metadata: Mapping[str, Any]) -> str | None:
    """Join the source URI and the service's id, which is unique in its knowledge base but names no document."""
    own, source = metadata.get(CHUNK_ID_KEY), metadata.get(SOURCE_URI_KEY)
    if not own:
        return None
    own = str(own).replace(ID_SEPARATOR, "%23")
    return f"{source}{ID_SEPARATOR}{own}" if source else own


def _own_name(text: str, metadata: Mapping[str, Any]) -> str:
    """Name a hit without a document, such as a row of a query, so that it counts as a document of its own."""
    own = metadata.get(CHUNK_ID_KEY) or [text, metadata.get(CONTENT_DETAILS_KEY)]
    return f"{UNNAMED_SOURCE}{sha256(repr(own).encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
