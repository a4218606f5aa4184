"""How the words of a file are looked for in the index."""

from ragstack_common.reading.census import comparison
from ragstack_common.reading.census.comparison import Comparison, IndexedText, words_of
from ragstack_common.reading.census.parts import Census, Part


def test_numbers_of_notes_do_not_divide_words() -> None:
    index = IndexedText()
    index.add(["Summary\u00b9 of\u00b2 leave i policy, 28\u00b3 days"])

    for text in ("Summary of leave policy", "Summary", "leave policy", "28 3", "283"):
        assert index.missing(words_of(text)) == []


def test_a_text_of_which_nothing_is_indexed_is_missed_in_a_long_part() -> None:
    long = Comparison(Census([Part("text", [f"word{number}" for number in range(500)])], "parts"))
    long.add([" ".join(f"word{number}" for number in range(499))])
    while long.next_query(1000) is not None:
        pass

    assert not long.found()[0].is_read(0.98)


def test_a_document_that_is_hardly_indexed_is_compared_in_little_time() -> None:
    texts = [f"missing{number} entirely{number}" for number in range(2 * comparison.MAX_FRUITLESS)]
    half = Comparison(Census([Part("text", texts)], "parts"))
    half.add(["Something else."])
    while half.next_query(1000) is not None:
        pass

    found = half.found()[0]

    assert (found.read, found.lost_texts) == (0, len(texts))
    assert half.index.fruitless == comparison.MAX_FRUITLESS


def test_a_file_of_one_long_paragraph_is_looked_for_part_by_part() -> None:
    words = [f"word{number}" for number in range(3_000)]
    long = Comparison(Census([Part("main text", [" ".join(words)])], "parts"))
    chunks = [words[start : start + 100] for start in range(0, 3_000, 100)]

    lookups = 0
    while (query := long.next_query(1000)) is not None:
        lookups += 1
        long.add(" ".join(chunk) for chunk in chunks if {*chunk} & {*query.split()})

    [found] = long.found()
    assert (found.words, found.read) == (3_000, 3_000)
    assert 1 < lookups <= len(chunks)
