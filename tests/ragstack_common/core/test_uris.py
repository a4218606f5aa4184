import pytest

from ragstack_common.core.uris import file_name, key_of_uri, resource_id, s3_uri, split_uri


@pytest.mark.parametrize("key", ["a.md", "people/a.md", "a b/ä+%2F.md", "s3://b/a.md", ""])
def test_a_uri_splits_into_the_bucket_and_key_that_it_was_made_of(key: str) -> None:
    assert split_uri(s3_uri("bucket", key)) == ("bucket", key)
    assert key_of_uri(s3_uri("bucket", key)) == key


@pytest.mark.parametrize("other", ["https://example.com/a.md", "people/a.md", "S3://bucket/a.md", ""])
def test_other_names_have_neither_bucket_nor_key(other: str) -> None:
    assert split_uri(other) == ("", "")


def test_the_last_part_names_a_file_and_a_resource() -> None:
    assert file_name("s3://bucket/people/a.md") == file_name("people/a.md") == file_name("a.md") == "a.md"
    assert resource_id("arn:aws:bedrock:eu-west-1:1:knowledge-base/KB1") == resource_id("KB1") == "KB1"
