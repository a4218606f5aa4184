import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.core.names import canonical, canonical_if_text, forms

MARKED = "Vertra\u0308ge"
"""As a Mac writes it."""

texts = st.text(
    st.one_of(st.sampled_from("aA/ae\u0308\u0301\u0323\u00e4\u1e69\u212b\u1100\u1161\uac00"), st.characters())
)


@given(texts)
def test_every_normal_form_of_a_name_compares_equal(name: str) -> None:
    for form in ("NFC", "NFD"):
        assert canonical(unicodedata.normalize(form, name)) == canonical(name)
    assert canonical(canonical(name)) == canonical(name)
    assert {canonical(each) for each in forms(name)} == {canonical(name)}


def test_case_and_letters_that_look_alike_differ() -> None:
    assert len({canonical(name) for name in ("Paris", "paris", "P\u0430ris", "\uff30aris")}) == 4


def test_texts_in_lists_are_names_and_other_values_stay() -> None:
    assert canonical_if_text([MARKED, "a"]) == ["Vertr\u00e4ge", "a"]
    assert canonical_if_text((MARKED, 3)) == ("Vertr\u00e4ge", 3)
    assert [canonical_if_text(each) for each in (None, True, 2.5)] == [None, True, 2.5]
