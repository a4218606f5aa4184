"""The attributes with which documents are uploaded: those of the command line, and those of their own sidecars."""

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn

from ragstack_common.errors import InvalidDocumentError
from ragstack_common.ingestion.sidecars import (
    check_attributes,
    check_corpus,
    merged_sidecar,
    read_sidecar,
    write_sidecar,
)
from ragstack_common.registry.records import Attributes, AttributeValue
from ragstack_local.uploads import LocalFile, shown

_ABSENT: Final = (errno.ENOENT, errno.ENAMETOOLONG)
"""A document's name can be so long that no sidecar of it can exist."""


def read_options(corpus: str | None, version: str | None, metadata: Sequence[str]) -> dict[str, AttributeValue]:
    """Read what the command line says about every document.

    Args:
        corpus: The attribute of that name.
        version: The attribute of that name; a text, whatever it looks like.
        metadata: Each ``name=value``. A value that is a JSON number, boolean, text in quotes, or list of texts is that;
            every other one is a text.

    Raises:
        InvalidDocumentError: One is no attribute; the message begins with the option.
    """
    found: dict[str, AttributeValue] = {}
    for option, name, value in _named(corpus, version, metadata):
        if name in found:
            raise InvalidDocumentError(f"{option}: {name} is given twice")
        found[name] = value
    try:
        write_sidecar(found)
    except InvalidDocumentError as error:
        raise InvalidDocumentError(f"--metadata: {error}") from None
    try:
        check_corpus(found)
    except InvalidDocumentError as error:
        raise InvalidDocumentError(f"--corpus: {error}") from None
    return found


def sidecar_for(file: LocalFile, given: Attributes, vector_store: str) -> bytes | None:
    """Write the sidecar to upload with a file: its own, and what was *given* for attributes that it does not name.

    Returns:
        None where there is neither.

    Raises:
        InvalidDocumentError: The document cannot have these attributes; the message names the file.
        OSError: The sidecar cannot be read.
    """
    whose = shown(file.sidecar_path)
    try:
        body = file.sidecar_path.read_bytes()
    except OSError as error:
        if error.errno not in _ABSENT:
            raise
        if os.path.islink(file.sidecar_path):
            raise InvalidDocumentError(f"{whose} is a link to a missing file") from None
        return _checked(file, given, vector_store) if given else None
    try:
        read_sidecar(body, vector_store)
        if given:
            whose += ", with the attributes of the command line,"
            body = merged_sidecar(body, given)
            read_sidecar(body, vector_store)
    except InvalidDocumentError as error:
        raise InvalidDocumentError(f"{whose} cannot be used: {error}") from None
    return body


def _checked(file: LocalFile, given: Attributes, vector_store: str) -> bytes:
    try:
        check_attributes(given, vector_store)
        return write_sidecar(given)
    except InvalidDocumentError as error:
        raise InvalidDocumentError(
            f"{shown(file.path)} cannot have the attributes from the command line: {error}"
        ) from None


def _named(
    corpus: str | None, version: str | None, metadata: Sequence[str]
) -> Iterator[tuple[str, str, AttributeValue]]:
    named: Mapping[str, str | None] = {"corpus": corpus, "version": version}
    for name, text in named.items():
        if text is None:
            continue
        if not text.strip():
            raise InvalidDocumentError(f"--{name}: write what it is called")
        yield f"--{name}", name, text
    for option in metadata:
        name, equals, text = option.partition("=")
        if not (name.strip() and equals and text.strip()):
            raise InvalidDocumentError(f"--metadata: {option!r} is no NAME=VALUE")
        yield "--metadata", name.strip(), _value(option, text)


def _value(option: str, text: str) -> AttributeValue:
    try:
        value: Any = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text
    if value is None or isinstance(value, dict):
        raise InvalidDocumentError(
            f"--metadata: {option!r}: an attribute is a text, a number, true or false, or a list of texts;"
            f" write {option.partition('=')[0]}='\"...\"' for these words as a text"
        )
    found: AttributeValue = value
    return found


def _refuse(constant: str) -> NoReturn:
    """NaN and Infinity are no JSON, though Python reads them."""
    raise ValueError(constant)
