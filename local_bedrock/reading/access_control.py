"""Access control lists of documents in managed knowledge bases.

A list is stored as ``{"allow": [user id, ...], "deny": [user id, ...]}``.
Sources: Amazon Bedrock User Guide, kb-managed-ds-s3-acl and kb-managed-ds-custom-acl.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from ragstack_common.reading.formats import UnreadableDocument

AccessList = dict[str, list[str]]

NOBODY: Final[AccessList] = {"allow": [], "deny": []}

_ENTRIES: Final = "accessControlList"


def parse_inline(entries: Iterable[Mapping[str, str]]) -> AccessList:
    """Return the list in a request. Source: bedrock-agent, shape DocumentAccessControlEntry."""
    found: AccessList = {"allow": [], "deny": []}
    for entry in entries:
        found[entry["access"].lower()].append(entry["name"])
    return found


def parse_sidecar(data: bytes, name: str) -> AccessList | None:
    """Return the list in a valid sidecar; None without entries.

    Raises:
        UnreadableDocument: The list is invalid.
    """
    document = json.loads(data.decode("utf-8-sig"))
    if not document.get(_ENTRIES):
        return None
    return _parsed(document[_ENTRIES], f"The {_ENTRIES} of the metadata file {name}")


def parse_prefixes(data: bytes, uri: str) -> list[tuple[str, AccessList]]:
    """Return the lists of prefixes in the file of a data source; a prefix is an S3 URI.

    Raises:
        UnreadableDocument: The file is not valid.
    """
    what = f"The access control file {uri}"
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except ValueError as error:
        raise UnreadableDocument(f"{what} is not JSON: {error}.") from None
    if not isinstance(document, list) or not all(
        isinstance(each, dict) and isinstance(each.get("keyPrefix"), str) for each in document
    ):
        raise UnreadableDocument(f'{what} must be [{{"keyPrefix": "s3://...", "aclEntries": [...]}}, ...].')
    return [(each["keyPrefix"], _parsed(each.get("aclEntries"), what)) for each in document]


def of_prefixes(prefixes: Sequence[tuple[str, AccessList]], uri: str) -> AccessList | None:
    """Return the list of a document: the entries of all prefixes that match; None if none does."""
    matching = [found for prefix, found in prefixes if uri.startswith(prefix)]
    if not matching:
        return None
    return {kind: [name for found in matching for name in found[kind]] for kind in NOBODY}


def tag(sidecar_tag: str | None, of_prefix: AccessList | None) -> str | None:
    """Return what changes whenever the sidecar of a document or its list in the file of prefixes does."""
    if of_prefix is None:
        return sidecar_tag
    return f"{sidecar_tag} {sha256(json.dumps(of_prefix).encode()).hexdigest()}"


def _parsed(entries: Any, what: str) -> AccessList:
    found: AccessList = {"allow": [], "deny": []}
    for entry in entries if isinstance(entries, list) else [None]:
        if not isinstance(entry, dict) or not isinstance(entry.get("Name"), str) or not entry["Name"]:
            raise UnreadableDocument(f'{what} must be [{{"Name": "...", "Type": "USER", "Access": "ALLOW"}}, ...].')
        kind = {"ALLOW": "allow", "DENY": "deny"}.get(str(entry.get("Access")))
        if entry.get("Type") != "USER" or kind is None:
            raise UnreadableDocument(
                f"{what} has an entry whose Type is not USER, or whose Access is not ALLOW or DENY."
            )
        found[kind].append(entry["Name"])
    return found
