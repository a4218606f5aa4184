"""The streams of compound files."""

import contextlib
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.reading.ole import CompoundFile
from tests.support.damaged_files import READERS, SEEDS
from tests.support.office_files import compound


@pytest.mark.parametrize("size", [0, 1, 64, 65, 4095, 4096, 4097, 50_000])
def test_a_stream_is_whole(size: int) -> None:
    stream = Random(size).randbytes(size)

    assert CompoundFile(compound("Workbook", stream)).stream("WORKBOOK") == stream
    assert CompoundFile(compound("Workbook", stream)).stream("Book") is None


def test_a_workbook_is_in_a_compound_file() -> None:
    assert READERS["xls"](compound("Workbook", SEEDS["xls"])) == READERS["xls"](SEEDS["xls"])


@given(st.data())
def test_a_damaged_file_ends(data: st.DataObject) -> None:
    file = bytearray(compound("Workbook", bytes(data.draw(st.sampled_from((100, 5_000))))))
    for _ in range(data.draw(st.integers(1, 6))):
        # Sectors that follow themselves, and those that do not exist.
        place = 4 * data.draw(st.integers(2, 512 - 1))
        file[place : place + 4] = data.draw(st.sampled_from((0, 1, 2, 3, 9_999, 0xFFFFFFFE, 0xFFFFFFFF))).to_bytes(
            4, "little"
        )

    with contextlib.suppress(ValueError):
        CompoundFile(bytes(file)).stream("Workbook")
