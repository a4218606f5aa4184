"""A small data set, and the command line as a user starts it."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RAGSTACK = Path(sys.executable).with_name("ragstack")

DOCUMENTS: tuple[dict[str, Any], ...] = (
    {"_id": "heron", "title": "Grey heron", "text": "The grey heron stands in shallow water and waits for fish."},
    {"_id": "osprey", "title": "Osprey", "text": "The osprey dives for fish from a great height."},
    {"_id": "kestrel", "title": "Kestrel", "text": "The kestrel hovers over fields and hunts voles."},
    {"_id": "heron boat", "title": "Heron 22", "text": "The Heron is a dinghy of plywood for two sailors."},
    {"_id": "ferry", "title": "Ferries", "text": "A ferry carries cars and people over shallow water."},
    {"_id": "empty", "title": "", "text": " "},
)
KINDS = {"heron": "bird", "osprey": "bird", "kestrel": "bird", "heron boat": "boat", "ferry": "boat", "empty": "bird"}
QUERIES: tuple[dict[str, Any], ...] = (
    {"_id": "q1", "text": "Which heron waits for fish?", "metadata": {"filter": {"kind": "bird"}}},
    {"_id": "q2", "text": "heron for sailors", "metadata": {"filter": {"kind": "boat"}}},
    {"_id": "q3", "text": "What hunts voles over fields?", "metadata": {"filter": {"kind": "bird"}}},
    {"_id": "unjudged", "text": "Nobody knows"},
)
JUDGMENTS = (("q1", "heron", 1), ("q1", "osprey", 0), ("q2", "heron boat", 1), ("q3", "kestrel", 1))


def write_data_set(folder: Path, queries: Sequence[Mapping[str, Any]] = QUERIES) -> Path:
    """Write birds and boats in BEIR's form."""
    (folder / "qrels").mkdir(parents=True)
    documents = [
        {**document, "metadata": {"kind": KINDS[document["_id"]], "tags": ["a", "b"]}} for document in DOCUMENTS
    ]
    for name, entries in (("corpus.jsonl", documents), ("queries.jsonl", queries)):
        (folder / name).write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    rows = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, judgment)) for judgment in JUDGMENTS)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def environment(data: Path, **env: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**inherited, "RAGSTACK_DATA": str(data), "COLUMNS": "200", **env}


def results(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return found


def rows(folder: Path, number: int = 0) -> dict[str, dict[str, Any]]:
    """Return the rows of a table by their names."""
    return {next(iter(row.values())): row for row in results(folder)["tables"][number]["rows"]}
