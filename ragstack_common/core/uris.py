"""URIs and keys of documents and of their sidecars, and the ids in ARNs."""

import re
from typing import Final
from urllib.parse import quote, unquote

_SCHEME: Final = "s3://"

_S3_HOST: Final = re.compile(r"(?:(.+)\.)?s3(?:[.-](?:dualstack\.)?[a-z]{2}(?:-[a-z]+)+-\d)?\.amazonaws\.com")
"""A host of S3: with the bucket or without, with the Region or without. Source: Amazon S3 user guide, methods for
accessing a bucket."""

MAX_URI_CHARACTERS: Final = 133
"""Direct ingestion takes ``s3://`` and at most 128 characters. Source: bedrock-agent, shape S3BucketUri."""

SIDECAR_SUFFIX: Final = ".metadata.json"
"""``report.pdf.metadata.json`` holds the attributes of ``report.pdf``."""

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

_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that change the direction of text, which can hide the type of a file."""


def s3_uri(bucket: str, key: str) -> str:
    """Return an object's URI; the key is not quoted."""
    return f"{_SCHEME}{bucket}/{key}"


def is_s3_uri(name: str) -> bool:
    """Whether a name of a document is its URI rather than its key."""
    return name.startswith(_SCHEME)


def split_uri(uri: str) -> tuple[str, str]:
    """Return the bucket and the key; what is missing is empty, and so are both of any other kind of URI."""
    bucket, _, key = uri.removeprefix(_SCHEME).partition("/") if is_s3_uri(uri) else ("", "", "")
    return bucket, key


def key_of_uri(uri: str) -> str:
    """Return the key; empty without one."""
    return split_uri(uri)[1]


def s3_uri_of_url(url: str) -> str | None:
    """Return the S3 URI of an object's https URL, with the bucket in the host or in the path; None for other URLs."""
    host, _, path = url.removeprefix("https://").partition("/")
    found = _S3_HOST.fullmatch(host) if url.startswith("https://") else None
    if found is None:
        return None
    bucket, _, key = ("", "", unquote(path)) if found[1] else unquote(path).partition("/")
    return s3_uri(found[1] or bucket, key) if key else None


def s3_urls(uri: str, region: str) -> tuple[str, str]:
    """Return the https URLs of an object, with the Region of its bucket and without."""
    bucket, key = split_uri(uri)
    return f"https://{bucket}.s3.{region}.amazonaws.com/{quote(key)}", f"https://{bucket}.s3.amazonaws.com/{quote(key)}"


def file_name(source: str) -> str:
    """Return the last part of a URI, a key or a path with slashes."""
    return source.rpartition("/")[2]


def saved_name(source: str) -> str:
    """Return the name with which the file of a URI, a key or a path is saved."""
    return _UNSAFE.sub("_", file_name(source))


def resource_id(name: str) -> str:
    """Return the id of a resource that is named by its id or its ARN."""
    return name.rpartition("/")[2]


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
    return _PROGRAM_FILE.fullmatch(file_name(key)) is not None


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
