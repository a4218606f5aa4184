"""The chunking strategies, without a server."""

import csv
import re
import zlib
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_bedrock.reading import chunking
from local_bedrock.reading.chunking import FixedSize, Hierarchical, Pieces, Semantic
from ragstack_common.embedding.hashed import HashedEmbedding
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.text.tables import TablesInText

SENTENCES = " ".join(f"Sentence number {number} stands here and says a few words." for number in range(200))
TEXTS = st.one_of(
    st.text(max_size=1500),
    st.lists(st.sampled_from(["Herons wade.", "Ships sail! ", "\n\n", "# Head\n", "かわせみ。", "x" * 40, " "])).map(
        "".join
    ),
)


def embed(texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Embed cheaply: what matters here is only that equal texts are equal."""
    vectors = np.zeros((len(texts), 8), dtype=np.float32)
    for row, text in enumerate(texts):
        vectors[row, zlib.crc32(text.encode("utf-8", "surrogatepass")) % 8] = 1
    return vectors


def check(text: str, pieces: Pieces, max_tokens: int) -> None:
    covered: set[int] = set()
    for chunk in pieces.chunks:
        assert chunk.text.strip() == chunk.text != ""
        assert text[chunk.start : chunk.start + len(chunk.text)] == chunk.text
        assert chunking.count_tokens(chunk.text) <= max_tokens + 1
        covered.update(range(chunk.start, chunk.start + len(chunk.text)))
    assert all(position in covered for position, character in enumerate(text) if character.strip())
    assert [chunk.start for chunk in pieces.chunks if chunk.parent is None] == sorted(
        chunk.start for chunk in pieces.chunks if chunk.parent is None
    )


@settings(deadline=None)
@given(TEXTS, st.integers(1, 60), st.integers(0, 99))
def test_chunks_of_fixed_size_hold_every_word_and_keep_their_size(text: str, max_tokens: int, overlap: int) -> None:
    check(text, FixedSize(max_tokens, overlap).cut(text, embed), max_tokens)


@settings(deadline=None)
@given(TEXTS, st.integers(1, 30), st.integers(1, 60), st.integers(1, 40))
def test_children_lie_inside_their_parents_and_both_keep_their_size(
    text: str, child: int, more: int, overlap: int
) -> None:
    parent = child + more

    pieces = Hierarchical(parent, child, overlap).cut(text, embed)

    check(text, pieces, child)
    check(text, Pieces(pieces.parents), parent)
    for chunk in pieces.chunks:
        assert chunk.parent is not None
        above = pieces.parents[chunk.parent]
        assert above.start <= chunk.start
        assert chunk.start + len(chunk.text) <= above.start + len(above.text)
    assert {chunk.parent for chunk in pieces.chunks} == set(range(len(pieces.parents)))


@settings(deadline=None)
@given(TEXTS, st.integers(1, 60), st.integers(0, 1), st.integers(50, 99))
def test_semantic_chunks_hold_every_word_once_and_keep_their_size(
    text: str, max_tokens: int, buffer_size: int, percentile: int
) -> None:
    pieces = Semantic(max_tokens, buffer_size, percentile).cut(text, embed)

    check(text, pieces, max_tokens)
    for first, second in pairwise(pieces.chunks):
        assert first.start + len(first.text) <= second.start


def table(rows: int, columns: int) -> str:
    header = [
        f"| {' | '.join(['Name', *(f'Month {number}' for number in range(1, columns))])} |",
        "| --- " * columns + "|",
    ]
    body = [f"| Name{row} | {' | '.join(f'{row}.{column}' for column in range(1, columns))} |" for row in range(rows)]
    return "\n".join(["# Rain", "", "In millimetres", "", *header, *body, "", "Measured daily."])


@settings(deadline=None)
@given(
    st.integers(0, 30), st.integers(1, 40), st.integers(10, 150), st.integers(0, 40), st.sampled_from(["fixed", "both"])
)
def test_tables_are_covered_by_chunks_that_can_be_read_alone(
    rows: int, columns: int, max_tokens: int, overlap: int, kind: str
) -> None:
    text = table(rows, columns)
    strategy = (
        FixedSize(max_tokens, overlap) if kind == "fixed" else Hierarchical(max_tokens * 2, max_tokens, overlap // 4)
    )

    pieces = strategy.cut(text, embed, TablesInText.of(text))

    check(text, pieces, max_tokens)
    for chunk in pieces.chunks:
        for number in re.findall(r"(?<![\d.])\d+\.(\d+)(?![\d.])", chunk.text):
            assert re.search(rf"Month {number}\b", chunk.whole)


def test_rows_are_whole_below_a_repeated_header() -> None:
    text = table(200, 8)

    chunks = FixedSize().cut(text, embed, TablesInText.of(text)).chunks

    assert len(chunks) > 10
    for chunk in chunks[1:]:
        assert chunk.whole.startswith("In millimetres\n\n| Name | Month 1 |")
        assert all(line.count("|") == 9 for line in chunk.text.removesuffix("Measured daily.").split("\n") if line)
        assert chunking.count_tokens(chunk.whole) <= 300


def test_parts_of_a_row_have_the_name_of_the_row_and_of_their_columns() -> None:
    text = table(3, 100)

    chunks = FixedSize().cut(text, embed, TablesInText.of(text)).chunks

    parts = [chunk for chunk in chunks if "1.50" in chunk.text]
    assert [line for line in parts[0].whole.split("\n") if "Month 50" in line]
    assert "| Name1 | " in parts[0].whole
    assert chunking.count_tokens(parts[0].whole) <= 300


@pytest.mark.parametrize(
    "text",
    [
        ",".join(f"c{number}" for number in range(60_000)) + "\n" + ",".join(map(str, range(60_000))),
        ",".join(f"c{number}" for number in range(5_000)) + "\nLisbon,1" * 5_000,
        f"Name,{'x' * 100_000}\n" + "\n".join(f"Lisbon,{number}" for number in range(500)),
    ],
    ids=["a long row", "a long header above short rows", "a long name"],
)
def test_what_chunks_repeat_stays_small(text: str) -> None:
    chunks = FixedSize().cut(text, embed, TablesInText.of(text, is_csv=True)).chunks

    assert max(len(chunk.repeated) for chunk in chunks) <= 3_000


def test_a_csv_file_is_cut_between_rows() -> None:
    text = "\n".join(
        ["City,Note,2025", *(f'City{number},"To pay. Soon, ""or"" later",{number}' for number in range(200))]
    )

    chunks = FixedSize().cut(text, embed, TablesInText.of(text, is_csv=True)).chunks

    assert len(chunks) > 5
    for chunk in chunks[1:]:
        assert chunk.repeated == "City,Note,2025\n"
        assert {len(row) for row in csv.reader(chunk.whole.split("\n"))} == {3}


def test_lines_without_sentences_are_kept_whole() -> None:
    text = "\n".join(f"Lisbon office number {number} costs {number} euros" for number in range(200))

    for chunk in FixedSize().cut(text, embed).chunks:
        assert all(re.fullmatch(r"Lisbon office .* euros", line) for line in chunk.text.split("\n"))


def test_default_chunks_have_about_300_tokens_and_end_with_a_sentence() -> None:
    found = FixedSize().cut(SENTENCES, embed).chunks

    sizes = [chunking.count_tokens(chunk.text) for chunk in found]
    assert 250 < min(sizes[:-1]) <= max(sizes) <= 300
    assert all(chunk.text.startswith("Sentence number") and chunk.text.endswith("words.") for chunk in found)


def test_a_chunk_begins_with_the_end_of_the_one_before() -> None:
    first, second = FixedSize(100, 20).cut(SENTENCES, embed).chunks[:2]

    overlap = first.start + len(first.text) - second.start
    assert 0 < chunking.count_tokens(first.text[-overlap:]) <= 20


def test_no_chunking_is_one_chunk() -> None:
    strategy = chunking.strategy({"chunkingConfiguration": {"chunkingStrategy": "NONE"}})

    assert len(strategy.cut(SENTENCES, embed).chunks) == 1


def test_a_word_without_end_is_cut() -> None:
    found = FixedSize().cut("x" * 100_000, embed).chunks

    assert len(found) > 50
    assert "".join(chunk.text for chunk in found) == "x" * 100_000


@pytest.mark.parametrize(
    "text",
    [
        "ພາສາລາວເປັນພາສາທີ່ໃຊ້ໃນປະເທດລາວ",
        "ភាសាខ្មែរជាភាសាផ្លូវការរបស់ប្រទេសកម្ពុជា",
        "မြန်မာဘာသာစကားသည်ရုံးသုံးဘာသာစကားဖြစ်သည်",
        "ภาษาไทยเป็นภาษาที่ใช้ในประเทศไทย",
        "བོད་སྐད་ནི་བོད་ལྗོངས",
        "中文是一种语言",
        "ﾆﾎﾝｺﾞ",
        "𠮷𡈽𠀋",
    ],
)
def test_a_character_of_a_script_without_spaces_counts_as_a_token(text: str) -> None:
    pieces = FixedSize(100, 20).cut(text * 100, embed)

    check(text * 100, pieces, 100)
    assert max(len(chunk.text) for chunk in pieces.chunks) <= 100


def test_both_layers_overlap_by_the_requested_tokens() -> None:
    pieces = Hierarchical(200, 50, 20).cut(SENTENCES, embed)

    for layer in (pieces.parents, [chunk for chunk in pieces.chunks if chunk.parent == 0]):
        first, second = layer[:2]
        overlap = first.start + len(first.text) - second.start
        assert 0 < chunking.count_tokens(first.text[-overlap:]) <= 20


def test_a_semantic_chunk_ends_where_the_text_turns_to_something_else() -> None:
    herons = "Herons wade in shallow water. Herons eat fish from shallow water. Herons nest near water."
    loans = "The loan bears interest. Interest on the loan is paid yearly. The loan is repaid with interest."

    pieces = Semantic(300, 1, 75).cut(f"{herons} {loans}", HashedEmbedding().embed)

    assert [chunk.text for chunk in pieces.chunks] == [herons, loans]


def test_semantic_chunking_rejects_a_text_over_its_limit() -> None:
    with pytest.raises(UnreadableDocument, match=r"at most 1,000,000: split the file"):
        Semantic(300, 0, 95).cut("Herons. " * 125_001, embed)


@pytest.mark.parametrize(
    "sentence", ["हर कर्मचारी को वर्ष में सत्ताईस दिन की छुट्टी मिलती है।", "متى يفتح مطعم الشركة في يوم العمل؟"]
)
def test_chunks_end_with_a_sentence_in_every_script(sentence: str) -> None:
    found = FixedSize(40, 0).cut(" ".join([sentence] * 20), embed).chunks

    assert len(found) < 20
    assert all(chunk.text.startswith(sentence) and chunk.text.endswith(sentence) for chunk in found)
