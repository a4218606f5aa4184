"""Attributes of the command line and of sidecars, together."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from ragstack_common.core.errors import InvalidDocumentError
from ragstack_local.files.uploads import LocalFile, read_options, sidecar_for
from tests.support.sidecars import record_sidecar


def file_with(folder: Path, sidecar: Any = None) -> LocalFile:
    path = folder / "leave.md"
    path.write_text("Thirty days.")
    if sidecar is not None:
        text = sidecar if isinstance(sidecar, str) else json.dumps({"metadataAttributes": sidecar})
        path.with_name("leave.md.metadata.json").write_text(text)
    return LocalFile(path, "leave.md")


def entries(body: bytes | None) -> Any:
    assert body is not None
    return json.loads(body)["metadataAttributes"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("travel", "travel"),
        ("2026", 2026),
        ("-2.5", -2.5),
        ("true", True),
        ('"2026"', "2026"),
        ('["staff", "hr"]', ["staff", "hr"]),
        ("[]", []),
        ("a=b", "a=b"),
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("[staff", "[staff"),
        ("Zürich & Büro", "Zürich & Büro"),
        ("2026-11-21", "2026-11-21"),
        ("1_000", "1_000"),
        ("[" * 100_000, "[" * 100_000),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_value_is_json_or_a_text(text: str, value: object) -> None:
    if len(text) > 10_000:
        with pytest.raises(InvalidDocumentError, match="at most 10,240 bytes are allowed"):
            read_options(None, None, [f"name={text}"])
        return

    found = read_options(None, None, [f"name={text}"])

    assert found == {"name": value}
    assert type(found["name"]) is type(value)


def test_corpus_and_version_are_always_texts() -> None:
    assert read_options("people", "2", ["year=2026"]) == {"corpus": "people", "version": "2", "year": 2026}
    assert read_options(None, None, []) == {}


@pytest.mark.parametrize(
    ("corpus", "version", "metadata", "words"),
    [
        (None, None, ["topic=  "], "'topic=  ' is not a NAME=VALUE pair"),
        (None, None, ["=travel"], "is not a NAME=VALUE pair"),
        (None, None, ["travel"], "is not a NAME=VALUE pair"),
        (None, None, ["a=1", "a=2"], "a is given twice"),
        ("people", None, ["corpus=product"], "corpus is given twice"),
        ("all", None, [], "a corpus cannot be called all"),
        (None, None, ["a=null"], "null cannot be an attribute"),
        (None, None, ['a={"b": 1}'], "cannot be an attribute"),
        (None, None, ["a=[1, 2]"], "the attribute 'a' is neither string, number, boolean nor list"),
        (None, None, ["x-amz-bedrock-kb-page=1"], "begins with x-amz-bedrock-kb-"),
        (None, None, ["a=\udce4"], "is not valid Unicode"),
        (None, None, ["a=" + json.dumps(["x"] * 11)], "the attribute 'a' is a list of 11 strings"),
        (None, None, ["a=" + "x" * 10_300], "at most 10,240 bytes are allowed"),
    ],
    ids=lambda value: str(value)[:30].encode("ascii", "replace").decode(),
)
def test_an_invalid_attribute_is_rejected(
    corpus: str | None, version: str | None, metadata: list[str], words: str
) -> None:
    with pytest.raises(InvalidDocumentError, match=re.escape(words)):
        read_options(corpus, version, metadata)


def test_a_document_without_a_sidecar_has_the_options(folder: Path) -> None:
    assert entries(sidecar_for(file_with(folder), {"topic": "leave", "year": 2026}, "OTHER")) == {
        "topic": "leave",
        "year": 2026,
    }


def test_the_documents_own_sidecar_wins_attribute_by_attribute(folder: Path) -> None:
    typed = {"value": {"type": "STRING", "stringValue": "x"}, "includeForEmbedding": True}

    body = sidecar_for(file_with(folder, {"topic": "own", "kind": typed}), {"topic": "given", "year": 2026}, "OTHER")

    assert entries(body) == {"topic": "own", "kind": typed, "year": 2026}


def test_a_sidecar_without_additions_stays_the_same_bytes(folder: Path) -> None:
    text = '\ufeff{ "metadataAttributes" :\n {"topic":"Büro"} }'

    assert sidecar_for(file_with(folder, text), {}, "OTHER") == text.encode()
    assert entries(sidecar_for(file_with(folder, text), {"a": 1}, "OTHER")) == {"topic": "Büro", "a": 1}


def test_added_attributes_leave_the_structure_of_a_csv_file(folder: Path) -> None:
    own = record_sidecar().decode()

    body = sidecar_for(file_with(folder, own), {"corpus": "people"}, "OTHER")

    assert json.loads(body or b"") == {**json.loads(own), "metadataAttributes": {"corpus": "people"}}


@pytest.mark.parametrize(
    ("sidecar", "given", "store", "words"),
    [
        ("{", {}, "OTHER", "leave.md.metadata.json cannot be used: it is not JSON"),
        (
            '{"metadataAttributes": {"a": null}}',
            {},
            "OTHER",
            "leave.md.metadata.json cannot be used: the attribute 'a'",
        ),
        ({"a": "x" * 1100}, {}, "S3_VECTORS", "leave.md.metadata.json cannot be used: the metadata has"),
        ({"a": "x" * 600}, {"b": "x" * 600}, "S3_VECTORS", "with the attributes of the command line, cannot be used"),
        ({"a": "x" * 8000}, {"b": "x" * 4000}, "OTHER", "with the attributes of the command line, cannot be used"),
        (None, {"b": "x" * 1100}, "S3_VECTORS", "leave.md cannot have the attributes from the command line"),
        (None, {f"a{n}": n for n in range(36)}, "S3_VECTORS", "36 keys; a knowledge base on S3 Vectors takes at most"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_attributes_over_a_limit_are_refused_with_the_file_name(
    folder: Path, sidecar: Any, given: dict[str, Any], store: str, words: str
) -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        sidecar_for(file_with(folder, sidecar), given, store)

    assert words in str(caught.value)
    assert str(folder / "leave.md") in str(caught.value)


@pytest.mark.skipif(sys.platform == "darwin", reason="names are always text there")
def test_a_reason_with_any_folder_name_can_be_printed(folder: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9"))
    odd.mkdir()

    with pytest.raises(InvalidDocumentError) as caught:
        sidecar_for(file_with(odd, "{"), {}, "OTHER")

    assert "caf\N{REPLACEMENT CHARACTER}/leave.md.metadata.json cannot be used" in str(caught.value)


def test_a_document_whose_name_is_too_long_for_a_sidecar_has_none(tmp_path: Path) -> None:
    path = tmp_path / f"{'字' * 81}.md"
    path.write_text("text")

    assert sidecar_for(LocalFile(path, path.name), {}, "OTHER") is None
    assert sidecar_for(LocalFile(path, path.name), {"a": "b"}, "OTHER") == b'{"metadataAttributes": {"a": "b"}}'
