"""The https URLs of objects in S3, in each form that AWS documents."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.core.uris import s3_uri, s3_uri_of_url, s3_urls


@pytest.mark.parametrize(
    ("url", "uri"),
    [
        ("https://docs.s3.eu-west-1.amazonaws.com/hr/leave.pdf", "s3://docs/hr/leave.pdf"),
        ("https://docs.s3.amazonaws.com/hr/leave.pdf", "s3://docs/hr/leave.pdf"),
        ("https://docs.s3-us-west-2.amazonaws.com/leave.pdf", "s3://docs/leave.pdf"),
        ("https://docs.s3.dualstack.us-gov-west-1.amazonaws.com/leave.pdf", "s3://docs/leave.pdf"),
        ("https://s3.ap-southeast-2.amazonaws.com/docs/hr/leave.pdf", "s3://docs/hr/leave.pdf"),
        ("https://s3.amazonaws.com/docs/leave.pdf", "s3://docs/leave.pdf"),
        ("https://a.b.s3.eu-west-1.amazonaws.com/leave.pdf", "s3://a.b/leave.pdf"),
        ("https://docs.s3.amazonaws.com/Status%20report%20%C3%BC.docx", "s3://docs/Status report ü.docx"),
        ("https://docs.s3.amazonaws.com/Status report #1?.docx", "s3://docs/Status report #1?.docx"),
        ("https://docs.s3.amazonaws.com/", None),
        ("https://s3.amazonaws.com/docs", None),
        ("https://example.com/leave.pdf", None),
        ("https://docs.s3.amazonaws.com.example.com/leave.pdf", None),
        ("http://docs.s3.amazonaws.com/leave.pdf", None),
        ("s3://docs/leave.pdf", None),
    ],
)
def test_a_url_of_s3_names_the_object(url: str, uri: str | None) -> None:
    assert s3_uri_of_url(url) == uri


@given(key=st.text(min_size=1).filter(lambda key: key.encode("utf-8", "ignore").decode() == key))
def test_the_urls_of_an_object_name_it(key: str) -> None:
    uri = s3_uri("documents-bucket", key)

    assert {s3_uri_of_url(url) for url in s3_urls(uri, "eu-central-1")} == {uri}
