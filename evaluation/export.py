"""A collection as files, for a knowledge base that reads its documents from a bucket."""

import json
from pathlib import Path
from typing import Final
from urllib.parse import quote

from evaluation.dataset import DataSet
from evaluation.index import inline_attributes, sources

SIDECAR: Final = ".metadata.json"
"""Source: Amazon Bedrock User Guide, metadata files beside documents."""


def write(data: DataSet, folder: Path) -> int:
    """Write each document with any text as ``ID.md``, its attributes beside it; ids are quoted as in a URL.

    Searches that return such files are judged by their names, whatever bucket they are in.

    Returns:
        How many documents were written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = sources(data.documents)
    for name, document in written.items():
        file = folder / f"{quote(name, safe='')}.md"
        file.write_text(document.markdown, encoding="utf-8")
        attributes = {entry["key"]: {"value": entry["value"]} for entry in inline_attributes(document.metadata)}
        if attributes:
            sidecar = json.dumps({"metadataAttributes": attributes}, ensure_ascii=False)
            file.with_name(file.name + SIDECAR).write_text(sidecar, encoding="utf-8")
    return len(written)
