"""URIs and keys of documents and of their sidecars, and the formats that Bedrock reads."""

import re
from typing import Final

from ragstack_common.reading.formats import MEDIA_TYPES
from ragstack_common.settings.limits import MAX_URI_CHARACTERS

SIDECAR_SUFFIX: Final = ".metadata.json"
"""``report.pdf.metadata.json`` holds the attributes of ``report.pdf``."""

MAX_SIDECAR_BYTES: Final = 10 * 1024
"""Source: user guide of Knowledge Bases, metadata files."""

SUFFIXES: Final = frozenset(MEDIA_TYPES)
"""Supported file types."""

_PROGRAM_FILE: Final = re.compile(
    # Owner files of Microsoft Office, lock files of LibreOffice, resource forks and folder views of macOS, thumbnails
    # and folder views of Windows, and temporary files of Word.
    r"~\$.*|\.~lock\..*#|\._.*|\.ds_store|icon\r|(?:eh)?thumbs(?:_vista)?\.db|desktop\.ini|~.*\.tmp",
    re.IGNORECASE | re.DOTALL,
)

_LINE_BREAK: Final = re.compile("[\n\r\x85\u2028\u2029]")
"""Characters that a dot in the service's pattern of URIs does not match.

Sources: bedrock-agent, shape S3BucketUri; ECMA-262, LineTerminator; java.util.regex.
"""


def s3_uri(bucket: str, key: str) -> str:
    """Return an object's URI; the key is not quoted."""
    return f"s3://{bucket}/{key}"


def fault_of_uri(uri: str) -> str | None:
    """Return why direct ingestion refuses this URI, and what to do; None if it accepts it."""
    if len(uri) > MAX_URI_CHARACTERS:
        return (
            f"The URI has {len(uri)} characters; Bedrock accepts at most {MAX_URI_CHARACTERS}: give the document a"
            " shorter key"
        )
    if _LINE_BREAK.search(uri):
        return "The URI contains a line break, which Bedrock does not accept: give the document another key"
    return None


def is_program_file(key: str) -> bool:
    """Whether a file, by its path or key, is one that office programs and operating systems leave among documents.

    Such files have the extension of a document, and are not documents: Word's ``~$report.docx`` locks ``report.docx``
    while it is open.
    """
    return _PROGRAM_FILE.fullmatch(key.rpartition("/")[2]) is not None


def leaves_its_bucket(key: str) -> bool:
    """Check whether a key has more ``..`` than folders before them; S3 refuses such a key.

    Source: Amazon S3 user guide, object key naming guidelines.
    """
    depth = 0
    for part in key.split("/"):
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return False
