"""Errors of Milvus's client."""

from typing import Any

import grpc
import pytest
from pymilvus.exceptions import MilvusException

from ragstack_common.core import errors
from ragstack_common.search.engines.milvus.errors import translated_errors


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        (8, "rate limit exceeded", errors.ThrottledError),
        (1400, "auth check failure, please check username and password", errors.AccessDeniedError),
        (65535, "permission deny: Search", errors.AccessDeniedError),
        (800, "database not found[database=shop]", errors.CollectionNotFoundError),
        (6, "field author does not exist", errors.RetrievalError),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded", errors.RetrievalTimeoutError),
        (grpc.StatusCode.UNAUTHENTICATED, "no token", errors.AccessDeniedError),
    ],
)
def test_errors_of_a_server_are_translated(code: Any, message: str, kind: type[Exception]) -> None:
    with (
        pytest.raises(errors.RetrievalError, match=message.partition("[")[0]) as raised,
        translated_errors("Collection c"),
    ):
        raise MilvusException(code, f"{message}\n  price == 'secret'")

    assert type(raised.value) is kind
    assert "secret" not in str(raised.value)
