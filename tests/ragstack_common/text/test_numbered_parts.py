import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.text.numbered_parts import NumberedPart


@given(
    st.builds(
        NumberedPart,
        st.sampled_from(["Page", "Slide"]),
        st.integers(1, 999_999),
        st.text("abc :(1)", max_size=9),
        st.booleans(),
    )
)
def test_the_heading_of_a_page_names_it_again(part: NumberedPart) -> None:
    assert NumberedPart.of(part.heading) == part


@pytest.mark.parametrize("heading", ["Page", "Page 0", "Pages 3", "Slide 3 of 4", "page 3", "Page 3 (draft)"])
def test_other_headings_are_no_pages(heading: str) -> None:
    assert NumberedPart.of(heading) is None
