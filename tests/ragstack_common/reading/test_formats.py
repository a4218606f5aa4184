import pytest

from ragstack_common.reading import formats


@pytest.mark.parametrize("suffix", formats.BEDROCK_SUFFIXES)
def test_each_extension_that_bedrock_reads_has_a_format_and_its_media_type(suffix: str) -> None:
    name = f"s3://bucket/A{suffix.upper()}"

    assert formats.of_mime_type(f"{formats.media_type(name)}; charset=utf-8") == formats.of_bedrock(name)


def test_no_extension_belongs_to_two_formats() -> None:
    suffixes = [suffix for each in formats.FORMATS.values() for suffix in each.suffixes]

    assert sorted(suffixes) == sorted(formats.MEDIA_TYPES)
    assert {*formats.BEDROCK_SUFFIXES} < {*suffixes}


def test_bedrock_refuses_what_is_converted_for_it() -> None:
    with pytest.raises(formats.UnreadableDocument, match=r"\.pptx is not supported"):
        formats.of_bedrock("talk.pptx")


@pytest.mark.parametrize("name", ["film.mp4", "notes.markdown", "pdf", ".pdf"])
def test_other_names_have_no_format(name: str) -> None:
    assert not formats.is_supported(name)
    with pytest.raises(formats.UnreadableDocument):
        formats.of_name(name)


@pytest.mark.parametrize("file_format", ["docx", "xlsx"])
@pytest.mark.parametrize(
    ("content", "reason"),
    [("EncryptedPackage", "is protected by a password"), ("WordDocument", "is in an older format, not a")],
)
def test_an_encrypted_file_is_told_from_one_in_an_older_format(file_format: str, content: str, reason: str) -> None:
    data = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(1024) + content.encode("utf-16-le") + bytes(1024)

    with pytest.raises(formats.UnreadableDocument, match=reason):
        formats.check(data, file_format)
