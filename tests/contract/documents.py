"""The documents of the contract suite."""

import re
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Document:
    """One chunk of a store.

    Attributes:
        id: Its chunk id, where the store lets one be chosen.
        source: The document that it is from; two chunks may share it.
        text: Its content.
        metadata: Strings, numbers, booleans, lists of strings.
    """

    id: str
    source: str
    text: str
    metadata: dict[str, Any] = field(default_factory=dict)


_ROWS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (
        "leave",
        "Employees have thirty days of annual leave in each calendar year.",
        {"corpus": "handbook", "version": "1", "year": 2023, "public": True, "tags": ["leave", "time"]},
    ),
    (
        "leave",
        "Unused annual leave can be carried over until the end of March.",
        {"corpus": "handbook", "version": "1", "year": 2023, "public": True, "tags": ["leave", "time"]},
    ),
    (
        "leave-2",
        "Since this year employees have thirty-two days of annual leave.",
        {"corpus": "handbook", "version": "2", "year": 2024, "public": True, "tags": ["leave"]},
    ),
    (
        "travel",
        "Book trains before flights, and second class unless the journey is over four hours.",
        {"corpus": "handbook", "version": "2", "year": 2024, "public": False, "tags": ["travel", "expenses"]},
    ),
    (
        "expenses",
        "Receipts for expenses are handed in within thirty days of the journey.",
        {"corpus": "handbook", "version": "1", "year": 2022, "public": False, "tags": ["expenses"]},
    ),
    (
        "appeal",
        "The tenant may appeal to the tribunal within twenty-one days of the decision.",
        {"corpus": "legal", "version": "3", "year": 2021, "public": True, "tags": ["appeal"]},
    ),
    (
        "lease",
        "A lease of more than seven years must be registered at the land registry.",
        {"corpus": "legal", "version": "3", "year": 2019, "public": True, "tags": ["lease", "registry"]},
    ),
    (
        "deposit",
        "The landlord returns the deposit within ten days after the lease has ended.",
        {"corpus": "legal", "version": "2", "year": 2020, "public": True, "tags": ["lease"]},
    ),
    (
        "pump",
        "Grease the bearings of the water pump every five hundred hours of operation.",
        {"corpus": "manual", "version": "1", "year": 2018, "public": False, "score": 4.5, "tags": ["pump"]},
    ),
    (
        "valve",
        "Close the inlet valve before you open the housing of the water pump.",
        {"corpus": "manual", "version": "1", "year": 2018, "public": False, "score": 3.25, "tags": ["pump", "valve"]},
    ),
    (
        "alarm",
        "The red lamp and a \"double\" tone tell that the tank's level is too low; it's 50% full.",
        {
            "corpus": "manual",
            "version": "2",
            "year": 2018,
            "score": 1.0,
            "tags": ["alarm"],
            "note": 'it\'s 50% "full" \\ ok',
        },
    ),
    (
        "plain",
        "A page without any attribute describes the history of the canteen.",
        {},
    ),
)
DOCUMENTS = tuple(
    Document(f"chunk-{number}", f"{name}.md", text, metadata)
    for number, (name, text, metadata) in enumerate(_ROWS, start=1)
)
"""Twelve chunks of eleven documents in three corpora; the last has no attributes."""

_PARTS = re.findall(
    r"\w+",
    "hose belt clamp drum gauge spring shaft filter seal bolt screw wheel plate lever chain hinge bracket "
    "cable fuse relay switch sensor panel battery display motor fan heater lamp socket plug meter timer coil rotor "
    "brush magnet",
)

LONG_QUERY = "grease the bearings of the water pump"
LONG_CHUNKS = 300

ONE_LONG_DOCUMENT = (
    *(
        Document(
            f"long-{n}",
            "long.md",
            f"Step {n}: grease the bearings of the water pump, then check {_PARTS[n % 17]} and {_PARTS[17 + n % 19]}.",
            {"corpus": "manual", "version": "1"},
        )
        for n in range(LONG_CHUNKS)
    ),
    *(
        Document(
            f"short-{n}",
            f"short-{n}.md",
            f"The canteen on floor {n} serves lunch at noon with a jug of water and no more than {n} kinds of bread.",
            {"corpus": ("handbook", "legal", "manual")[n % 3], "version": "1"},
        )
        for n in range(24)
    ),
)
"""A document of 300 chunks, each nearer to LONG_QUERY than any of the 24 documents of one chunk."""
