"""The documents of a run, and what is in them. They are made up."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

ANIMALS: Final[Mapping[str, Mapping[str, Any]]] = {
    "c": {"legs": 4, "habitats": ["land"], "wild": True, "name": "cheetah"},
    "a": {"legs": 6, "habitats": ["land", "sea"]},
    "s": {"wild": False},
    "w": {"legs": 0, "habitats": ["sea"], "name": "whale"},
    "n": {},
}
"""Attributes of the documents by which filters are tried: numbers, booleans, strings, lists, and none."""

EVERY_ANIMAL: Final = "".join(sorted(ANIMALS))

ANIMAL_QUERY: Final = "Which animals live here: the cheetah, the ant, the snail, the whale or the newt?"

ASCII_WORD: Final = "quayside"
UTF8_WORD: Final = "Förderbrücke"
CHINESE_TEXT: Final = "港口起重机每天工作"
PAGE_WORDS: Final = ("mooring", "ballast")
"""Words of the first and of the second page of the PDF file."""

LONG_QUERY: Final = "container on the stack of the terminal"
LONG_TEXT: Final = " ".join(
    f"Container number {number} waits in row {number % 17} of the terminal until the crane of shift {number % 5} lifts"
    " it onto the ship."
    for number in range(260)
)
"""More than a hundred chunks of twenty tokens."""

JOB_PREFIX: Final = "jobs/"
JOB_KEYS: Final = tuple(f"{JOB_PREFIX}{number}.md" for number in range(12))
EARLY_KEY: Final = f"{JOB_PREFIX}early.md"

CONNECTOR_PREFIX: Final = "connector/"
CONNECTOR_KEY: Final = f"{CONNECTOR_PREFIX}notice.md"
CONNECTOR_WORD: Final = "breakwater"
PROTECTED_PREFIX: Final = "protected/"
PROTECTED_KEYS: Final = tuple(f"{PROTECTED_PREFIX}{number}.md" for number in range(10))
PROTECTED_WORD: Final = "lighter"
LISTED_PREFIX: Final = "listed/"
LISTED_WORD: Final = "manifest"
READER: Final = "reader@example.com"
READABLE_KEY: Final = f"{LISTED_PREFIX}readable.md"
DENIED_KEY: Final = f"{LISTED_PREFIX}denied.md"
UNLISTED_KEY: Final = f"{LISTED_PREFIX}unlisted.md"

LOST_KEY: Final = f"{LISTED_PREFIX}lost.md"

SELECTED_PREFIX: Final = "selected/"
SELECTED_WORD: Final = "gangway"
SELECTED_NAMES: Final = ("whole.md", "whole.md.txt", "inner.md")
"""Documents of which the first one matches a pattern as a whole; the others would match with a part of the key."""

SELECTED_PATTERNS: Final = (r"selected/whole\.md", r"inner\.md", r"selected/(heavy\.md|hatch\.xyz)")
SKIPPED: Final[Mapping[str, bytes]] = {
    f"{SELECTED_PREFIX}heavy.md": b"The anchor is heavy.\n" * 60_000,
    f"{SELECTED_PREFIX}hatch.xyz": b"The hatch is closed.\n",
}
"""A document of more than one megabyte, and one of an unsupported type."""

METADATA_PREFIX: Final = "metadata/"
WHOLE_KEY: Final = "below the whole key"

SHARED_PREFIX: Final = "shared/"
SHARED_WORD: Final = "capstan"
SHARED_NAMES: Final = ("both.md", "denied.md", "open.md")
OTHER: Final = "other@example.com"

ENTRIES: Final[Mapping[str, tuple[str, str]]] = {
    SHARED_PREFIX: (READER, "ALLOW"),
    f"{SHARED_PREFIX}both": (OTHER, "ALLOW"),
    f"{SHARED_PREFIX}d": (READER, "DENY"),
    f"{SHARED_PREFIX}denied": (READER, "ALLOW"),
}
"""A user and an access for each prefix. What the longest prefix alone allows is different."""

UNREADABLE_KEY: Final = "lists/unreadable.json"

PEOPLE_PREFIX: Final = "people/"
PEOPLE_WORD: Final = "purser"

MANY_KEY: Final = "managed/many.md"
"""The document with more than a hundred chunks of 300 tokens."""

IRRELEVANT_QUERY: Final = "Sonnets of the Renaissance"

ANIMAL_PREFIX: Final = "animals/"
FIRST_KEY: Final = f"{ANIMAL_PREFIX}c.md"
ASCII_KEY: Final = "files/ascii.txt"
UTF8_KEY: Final = "files/utf8.txt"
MARKDOWN_KEY: Final = "files/utf8.md"
HTML_KEY: Final = "files/page.html"
CSV_KEY: Final = "files/table.csv"
PDF_KEY: Final = "files/pages.pdf"
LARGE_METADATA_KEY: Final = "files/large-metadata.md"
MANY_ATTRIBUTES_KEY: Final = "files/many-attributes.md"
LONG_LIST_KEY: Final = "files/long-list.md"
UNSUPPORTED_KEY: Final = "files/unsupported.xyz"

_SIDECARS: Final[Mapping[str, Mapping[str, Any]]] = {
    **{f"{ANIMAL_PREFIX}{letter}.md": attributes for letter, attributes in ANIMALS.items() if attributes},
    LARGE_METADATA_KEY: {f"attribute{number}": "x" * 200 for number in range(6)},
    MANY_ATTRIBUTES_KEY: {f"a{number}": number for number in range(36)},
    LONG_LIST_KEY: {"numbers": [str(number) for number in range(11)]},
}

_ALLOW: Final = {"Name": READER, "Type": "USER", "Access": "ALLOW"}

_LISTS: Final[Mapping[str, Sequence[Mapping[str, str]]]] = {
    READABLE_KEY: [_ALLOW],
    DENIED_KEY: [_ALLOW, {**_ALLOW, "Access": "DENY"}],
    LOST_KEY: [_ALLOW],
}
"""Access control lists of documents. Source: Amazon Bedrock User Guide, kb-managed-ds-s3-acl."""

UNREADABLE_LIST: Final = json.dumps({"accessControlList": [{**_ALLOW, "Access": "PERHAPS"}]}).encode()
"""A metadata file."""

_NAMES: Final = {"c": "cheetah", "a": "ant", "s": "snail", "w": "whale", "n": "newt"}


def sidecar(key: str) -> str | None:
    """Return the key of the sidecar of a document; None if it has none."""
    return f"{key}.metadata.json" if key in _SIDECARS else None


def uri_of(result: Mapping[str, Any]) -> str:
    """Return the URI or the id in the location of a result of Retrieve."""
    place = result["location"]
    return str(place.get("s3Location", {}).get("uri") or place.get("customDocumentLocation", {}).get("id"))


def letters(results: Sequence[Mapping[str, Any]]) -> str:
    """Return the letters of the animals in results of Retrieve, sorted, each once."""
    uris = [str(each["location"]) for each in results]
    return "".join(letter for letter in sorted(ANIMALS) if any(f"{ANIMAL_PREFIX}{letter}.md" in uri for uri in uris))


def pdf(*pages: Sequence[str]) -> bytes:
    """Return a PDF file with these lines of ASCII text on its pages."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] /MediaBox [0 0 595 842] >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, lines in enumerate(pages):
        drawn = f"BT /F 10 Tf 14 TL 50 800 Td {' '.join(f'({line}) Tj T*' for line in lines)} ET"
        resources = "/Resources << /Font << /F 3 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R /Contents {5 + 2 * number} 0 R {resources} >>")
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    made, offsets = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(made))
        made += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    end = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n"
    return made + f"{end}{len(made)}\n%%EOF".encode()


def _page(word: str) -> list[str]:
    """Return lines of more than one chunk of 300 tokens."""
    return [f"The {word} of ship {number} is checked in the harbour by two people." for number in range(40)]


def _contents() -> dict[str, bytes]:
    texts = {
        **{
            f"{ANIMAL_PREFIX}{letter}.md": f"# Animals\n\nThe {name} is an animal that lives here."
            for letter, name in _NAMES.items()
        },
        ASCII_KEY: f"The {ASCII_WORD} is swept every morning.\n",
        UTF8_KEY: f"Die {UTF8_WORD} wird jährlich geprüft, außer bei Sturm.\n",
        MARKDOWN_KEY: f"# 港口\n\n{CHINESE_TEXT}。\n",
        HTML_KEY: "<!doctype html><title>Tides</title><body><p>The tide gauge stands at pier seven.</p></body>",
        CSV_KEY: "berth,depth\nnorth,eleven metres\nsouth,nine metres\n",
        LARGE_METADATA_KEY: "The bollard is painted yellow.\n",
        MANY_ATTRIBUTES_KEY: "The fender is made of rubber.\n",
        LONG_LIST_KEY: "The buoy has a green light.\n",
        UNSUPPORTED_KEY: "The hatch is closed.\n",
    }
    return {**{key: text.encode() for key, text in texts.items()}, PDF_KEY: pdf(*map(_page, PAGE_WORDS))}


def _many() -> str:
    return "\n\n".join(
        f"Container {number} is the cargo of voyage {number % 13} and leaves the terminal on the ship of line"
        f" {number % 7}, after its seal and its papers were compared by two people at gate {number % 3}."
        for number in range(800)
    )


_CONTENTS: Final = _contents()

KEYS: Final = tuple(_CONTENTS)
"""The documents that are ingested directly."""

OBJECTS: Final[Mapping[str, bytes]] = {
    **_CONTENTS,
    **{f"{key}.metadata.json": json.dumps({"metadataAttributes": each}).encode() for key, each in _SIDECARS.items()},
    **{
        f"{key}.metadata.json": json.dumps({"metadataAttributes": {"listed": True}, "accessControlList": each}).encode()
        for key, each in _LISTS.items()
    },
    **{key: f"Shift report {key}: nothing to report.\n".encode() for key in (*JOB_KEYS, EARLY_KEY)},
    **{key: f"The {PROTECTED_WORD} {key} is moored.\n".encode() for key in PROTECTED_KEYS},
    **{key: f"The {LISTED_WORD} {key} is signed.\n".encode() for key in (*_LISTS, UNLISTED_KEY)},
    **{f"{SELECTED_PREFIX}{name}": f"The {SELECTED_WORD} {name} is lowered.\n".encode() for name in SELECTED_NAMES},
    **SKIPPED,
    **{
        f"{METADATA_PREFIX}{key}.metadata.json": json.dumps({"metadataAttributes": {"place": place}}).encode()
        for key, place in ((f"{SELECTED_PREFIX}whole.md", WHOLE_KEY), ("whole.md", "below the name"))
    },
    **{f"{SHARED_PREFIX}{name}": f"The {SHARED_WORD} {name} turns.\n".encode() for name in SHARED_NAMES},
    UNREADABLE_KEY: b"not JSON",
    MANY_KEY: _many().encode(),
    CONNECTOR_KEY: f"The {CONNECTOR_WORD} is repaired in spring.\n".encode(),
    f"{CONNECTOR_KEY}.metadata.json": b'{"metadataAttributes": {"year": 2026}}',
}
"""All objects of the bucket."""
