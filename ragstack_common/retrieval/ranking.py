"""From the service's hits to one ranked list: normalise, boost, keep the best of each, order."""

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from ragstack_common import contextual_headers
from ragstack_common.models import DeduplicateBy, Result

CHUNK_ID_KEY: Final = "x-amz-bedrock-kb-chunk-id"
SOURCE_URI_KEY: Final = "x-amz-bedrock-kb-source-uri"


@dataclass(frozen=True)
class SliceHits:
    """What one slice found.

    Attributes:
        name: The slice's name.
        boost: Factor on its scores, 1.0 for none.
        hits: The service's ``retrievalResults``.
    """

    name: str
    boost: float
    hits: Sequence[dict[str, Any]]


def merge(slices: Iterable[SliceHits], deduplicate_by: DeduplicateBy = "document") -> list[Result]:
    """Merge slices into one list, best score first, one result for each document or chunk.

    Ties are broken by the base score, then by URI and chunk, so that the order never depends on which slice answered
    first.
    """
    best: dict[str, Result] = {}
    results = [_result(hit, part) for part in slices for hit in part.hits]
    for identity, result in _ranked(results, deduplicate_by):
        kept = best.setdefault(identity, result)["ranking"]["slices"]
        kept += [name for name in result["ranking"]["slices"] if name not in kept]
    return list(best.values())


def deduplicate(results: Iterable[Result]) -> list[Result]:
    """Keep the best-scored result of each document, best first. The results themselves are left as they are."""
    best: dict[str, Result] = {}
    for identity, result in _ranked(results, "document"):
        best.setdefault(identity, result)
    return list(best.values())


def distinct(hits: Iterable[dict[str, Any]], deduplicate_by: DeduplicateBy) -> int:
    """Count the documents or the chunks among the service's hits."""
    return len({_identity(hit, uri_of(hit), deduplicate_by) for hit in hits})


def uri_of(result: Result) -> str | None:
    """Tell where a result's document lies: its S3 URI, URL or identifier, or None."""
    location = result.get("location") or {}
    for name, place in location.items():
        if name.endswith("Location") and isinstance(place, dict):
            uri = place.get("uri") or place.get("url") or place.get("id")
            if uri:
                return str(uri)
    uri = (result.get("metadata") or {}).get(SOURCE_URI_KEY)
    return str(uri) if uri else None


def _result(hit: dict[str, Any], part: SliceHits) -> Result:
    base = hit.get("score")
    base_score = 0.0 if base is None else float(base)
    content = hit.get("content") or {}
    header, text = contextual_headers.split(_text(content))
    result: Result = {
        "score": base_score * part.boost,
        "content": text,
        "location": hit.get("location") or {},
        "metadata": hit.get("metadata") or {},
        "content_type": content.get("type") or "TEXT",
        "ranking": {"base_score": base_score, "boost": part.boost, "slices": [part.name]},
    }
    if result["content_type"] != "TEXT":
        result["content_details"] = {name: part for name, part in content.items() if name != "type"}
    if header is not None:
        result["context"] = header
    return result


def _text(content: dict[str, Any]) -> str:
    """Read the words of a content: its text, what was said in a recording, or what a film shows."""
    audio, video = content.get("audio") or {}, content.get("video") or {}
    return content.get("text") or audio.get("transcription") or video.get("summary") or ""


def _ranked(results: Iterable[Result], deduplicate_by: DeduplicateBy) -> list[tuple[str, Result]]:
    """Order the results, each behind the name that its duplicates share."""
    with_uri = ((result, uri_of(result)) for result in results)
    keyed = [(_order(result, uri), _identity(result, uri, deduplicate_by), result) for result, uri in with_uri]
    keyed.sort(key=itemgetter(0))
    return [(identity, result) for _, identity, result in keyed]


def _identity(result: Result, uri: str | None, deduplicate_by: DeduplicateBy) -> str:
    if uri is not None and deduplicate_by == "document":
        return f"uri {uri}"
    chunk = (result.get("metadata") or {}).get(CHUNK_ID_KEY)
    return f"chunk {chunk}" if chunk else f"text {uri} {_digest(result)}"


def _digest(result: Result) -> str:
    content = [result.get("content"), result.get("content_details")]
    return hashlib.sha256(repr(content).encode("utf-8", "surrogatepass")).hexdigest()


def _order(result: Result, uri: str | None) -> tuple[float, float, str, str, str]:
    score = result.get("score")
    descending = math.inf if score is None else -float(score)
    base = (result.get("ranking") or {}).get("base_score", score)
    chunk = (result.get("metadata") or {}).get(CHUNK_ID_KEY)
    return descending, -float(base or 0.0), uri or "", str(chunk or ""), str(result.get("content"))
