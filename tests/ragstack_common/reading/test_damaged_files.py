"""A damaged file is read as far as it goes, or refused with a reason; no reader fails in another way."""

import contextlib
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstack_common.reading.formats import UnreadableDocument
from tests.support.damaged_files import READERS, SEEDS, damaged
from tests.support.soak import examples

EXPECTED = (UnreadableDocument, MemoryError, RecursionError)
"""What a reader may raise; conversion.py explains the last one."""


@pytest.mark.parametrize("file_format", sorted(READERS))
def test_the_whole_file_is_read(file_format: str) -> None:
    READERS[file_format](SEEDS[file_format])


@pytest.mark.slow
@pytest.mark.parametrize("file_format", sorted(READERS))
@settings(max_examples=examples(3_200, share=32))
@given(random=st.randoms(use_true_random=False))
def test_damage_at_random(file_format: str, random: Random) -> None:
    data = damaged(SEEDS[file_format], file_format, random)

    with contextlib.suppress(*EXPECTED):
        READERS[file_format](data)


@pytest.mark.parametrize("file_format", sorted(READERS))
def test_a_file_that_ends_early(file_format: str) -> None:
    data = SEEDS[file_format]
    for part in range(20):
        with contextlib.suppress(UnreadableDocument):
            READERS[file_format](data[: len(data) * part // 20])
