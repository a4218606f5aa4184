"""The contents of a key so far, and whether the current one can be indexed."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Final

from ragstack_common.settings.limits import MAX_SIDECAR_BYTES

BAD_SIDECARS: Final = (
    b"{",
    b"[]",
    b'{"metadataAttributes": {"nested": {"a": 1}}}',
    b'{"metadataAttributes": {"x-amz-bedrock-kb-mine": "no"}}',
    json.dumps({"metadataAttributes": {"long": "x" * MAX_SIDECAR_BYTES}}).encode(),
)


TOO_LONG: Final = "x" * 128 + ".txt"

BAD_KEYS: Final = {
    TOO_LONG: "a URI that is too long",
    ".png": "a damaged picture",
    ".pdf": "a damaged PDF",
}
"""Ends of keys that cannot be indexed with any content."""

BEGINNINGS: Final = {".png": b"\x89PNG\r\n\x1a\n", ".pdf": b"%PDF-1.7\n"}
"""What such contents begin with: without it, they would be read as text."""


@dataclass
class Life:
    """A key, and the words and entity tags of its contents so far; body and sidecar are None after a deletion."""

    key: str
    words: list[str] = field(default_factory=list)
    etags: set[str] = field(default_factory=set)
    body: bytes | None = None
    sidecar: bytes | None = None

    @property
    def bad(self) -> str | None:
        """Why the current content cannot be indexed; None if it must be indexed."""
        if fault := fault_of(self.key):
            return fault
        if self.sidecar in BAD_SIDECARS:
            return "a sidecar that cannot be used"
        return None if self.words[-1] else "a content that cannot be read"

    def gets(self, body: bytes) -> None:
        """Record a new content."""
        self.body = body
        self.etags.add(f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"')


def fault_of(key: str) -> str | None:
    """Return why no content of this key can be indexed; None if it depends on the content."""
    return next((why for end, why in BAD_KEYS.items() if key.endswith(end)), None)
