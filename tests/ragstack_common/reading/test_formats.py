import pytest

from ragstack_common.reading import formats


@pytest.mark.parametrize("suffix", sorted(formats.MEDIA_TYPES))
def test_every_supported_extension_has_a_format_and_its_media_type(suffix: str) -> None:
    name = f"s3://bucket/A{suffix.upper()}"

    assert formats.of_mime_type(f"{formats.media_type(name)}; charset=utf-8") == formats.of_name(name)


@pytest.mark.parametrize("name", ["film.mp4", "notes.markdown", "pdf", ".pdf"])
def test_other_names_have_no_format(name: str) -> None:
    assert not formats.is_supported(name)
    with pytest.raises(formats.UnreadableDocument):
        formats.of_name(name)
