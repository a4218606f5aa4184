"""Chunking, contextual headers, decoding and the hashed embedding, without a server."""

import subprocess
import sys
import time
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstack_local.bedrock import chunking, context, formats
from ragstack_local.bedrock.chunking import FixedSize
from ragstack_local.bedrock.formats import UnreadableDocument
from ragstack_local.bedrock.hashed import HashedEmbedding
from ragstack_local.bedrock.parsing import Parser

SENTENCES = " ".join(f"Sentence number {number} stands here and says a few words." for number in range(200))


@settings(deadline=None)
@given(st.text(max_size=2000), st.integers(1, 60), st.integers(0, 99))
def test_chunks_hold_every_word_and_keep_their_size(text: str, max_tokens: int, overlap: int) -> None:
    found = chunking.chunks(text, FixedSize(max_tokens, overlap))

    covered: set[int] = set()
    for chunk in found:
        assert chunk.text.strip() == chunk.text != ""
        assert text[chunk.start : chunk.start + len(chunk.text)] == chunk.text
        assert chunking.count_tokens(chunk.text) <= max_tokens + 1
        covered.update(range(chunk.start, chunk.start + len(chunk.text)))
    assert all(position in covered for position, character in enumerate(text) if character.strip())


def test_chunks_end_where_sentences_end() -> None:
    found = chunking.chunks(SENTENCES, FixedSize())

    assert len(found) > 3
    assert all(chunk.text.startswith("Sentence number") and chunk.text.endswith("words.") for chunk in found)


def test_a_chunk_begins_with_the_end_of_the_one_before() -> None:
    first, second = chunking.chunks(SENTENCES, FixedSize(100, 20))[:2]

    overlap = first.start + len(first.text) - second.start
    assert 0 < chunking.count_tokens(first.text[-overlap:]) <= 20


def test_the_default_chunk_has_about_300_tokens() -> None:
    sizes = [chunking.count_tokens(chunk.text) for chunk in chunking.chunks(SENTENCES, FixedSize())]

    assert max(sizes) <= 300
    assert min(sizes[:-1]) > 250


def test_no_chunking_is_one_chunk() -> None:
    size = chunking.strategy({"chunkingConfiguration": {"chunkingStrategy": "NONE"}})

    assert len(chunking.chunks(SENTENCES, size)) == 1


def test_a_word_without_end_is_cut() -> None:
    found = chunking.chunks("x" * 100_000, FixedSize())

    assert len(found) > 50
    assert "".join(chunk.text for chunk in found) == "x" * 100_000


def test_the_path_of_headings_leaves_code_blocks_out() -> None:
    text = "# Guide\n\n## Setup\n\n```\n# a comment\n```\n\nhere\n\n## Use\n\n### Daily\n\nthere\n"
    outline = context.outline(text)

    assert outline.path_at(text.index("here")) == ("Guide", "Setup")
    assert outline.path_at(text.index("there")) == ("Guide", "Use", "Daily")


def test_a_header_names_file_title_path_and_chosen_attributes() -> None:
    made = context.header("s3://bucket/leave_policy-2024.md", "Leave", ("Leave", "Parental"), ("author: Ann",))

    assert made == "leave policy 2024\nLeave\nParental\nauthor: Ann"


@pytest.mark.parametrize(
    ("encoding", "mark"), [("utf-8", b""), ("utf-8-sig", b""), ("utf-16", b""), ("cp1252", b""), ("utf-32", b"")]
)
def test_a_text_is_read_in_its_encoding(encoding: str, mark: bytes) -> None:
    text = "Größe und Übermut tun selten gut. Die Füße trägt er über die Brücke."

    parsed = Parser().parse(mark + text.encode(encoding), "txt")

    assert parsed.text == text


def test_a_zip_bomb_is_refused_before_it_unpacks() -> None:
    data = BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("word/document.xml", "w") as entry:
        for _ in range(600):
            entry.write(bytes(1024 * 1024))
    parser = Parser()

    with pytest.raises(UnreadableDocument, match="would unpack to"):
        parser.parse(data.getvalue(), "docx")
    parser.close()


def test_a_file_that_takes_too_long_is_given_up_and_the_next_one_is_read() -> None:
    parser = Parser(time_limit_seconds=3)
    nested = b"<html><body>" + b"<div><p>word " * 300_000
    start = time.monotonic()

    with pytest.raises(UnreadableDocument, match=r"The|Reading"):
        parser.parse(nested, "html")
    taken = time.monotonic() - start
    after = parser.parse(b"<p>Herons</p>", "html")
    parser.close()

    assert taken < 10
    assert after.text.strip() == "Herons"


def test_the_message_for_an_unknown_type_lists_the_known_ones() -> None:
    with pytest.raises(UnreadableDocument) as caught:
        formats.of_name("s3://bucket/film.mp4")

    assert str(caught.value) == (
        "The file type .mp4 is not supported: use one of csv, doc, docx, html, md, pdf, txt, xls, xlsx."
    )


def test_the_hashed_embedding_is_the_same_in_every_process() -> None:
    program = (
        "from ragstack_local.bedrock.hashed import HashedEmbedding\n"
        "print(HashedEmbedding().embed(['Herons stand, ähnlich wie Störche.']).tobytes().hex())"
    )

    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    here = HashedEmbedding().embed(["Herons stand, ähnlich wie Störche."]).tobytes().hex()
    assert other.stdout.strip() == here


@given(st.lists(st.text(max_size=200), max_size=5))
@settings(deadline=None)
def test_vectors_have_unit_length_or_none(texts: list[str]) -> None:
    vectors = HashedEmbedding().embed(texts)

    lengths = np.linalg.norm(vectors, axis=1)
    assert vectors.shape == (len(texts), 1024)
    assert np.all(np.isclose(lengths, 1, atol=1e-5) | (lengths == 0))


def test_related_words_are_closer_than_others() -> None:
    query, near, far = HashedEmbedding().embed(["photosynthetic", "photosynthesis", "bridge"])

    assert query @ near > 0.3
    assert abs(query @ far) < 0.1


def test_every_shared_file_is_indexed_or_fails_with_a_reason(shared_data: Path) -> None:
    parser = Parser()
    files = [path for path in sorted((shared_data / "files").rglob("*")) if 0 < path.stat().st_size < 40_000]
    outcomes, reasons = [], []

    for path in files:
        if not path.is_file():
            continue
        try:
            parsed = parser.parse(path.read_bytes(), formats.of_name(path.name))
            outcomes.append(len(parsed.text) > 0)
        except UnreadableDocument as error:
            reasons.append(str(error))
    parser.close()

    assert sum(outcomes) > 50
    assert all(reason.endswith(".") for reason in reasons)
    assert not [reason for reason in reasons if "ended its reader" in reason]
