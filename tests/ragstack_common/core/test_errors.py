"""The tree of errors is the one that is drawn, and every one of them has an answer over HTTP."""

import re
from http import HTTPStatus
from typing import Any

import pytest
from botocore.exceptions import ClientError

from ragstack_common import filters
from ragstack_common.core import errors
from ragstack_common.core.metrics import DEPLOYMENT_FAULTS, UPSTREAM_THROTTLES
from ragstack_common.core.reporting import error_code, error_status, failing_as, record_failure


def subclasses(kind: type[Exception]) -> list[type[Exception]]:
    return [kind] + [grandchild for child in kind.__subclasses__() for grandchild in subclasses(child)]


ALL = [kind for kind in subclasses(errors.RagStackError) if kind.__module__ == errors.__name__]


def test_the_drawing_shows_every_error_below_its_base() -> None:
    drawn: dict[str, str | None] = {}
    bases: list[tuple[int, str]] = []
    for indent, name in re.findall(r"^([ │├└─]*)(\w+Error)\b", errors.__doc__ or "", re.MULTILINE):
        while bases and bases[-1][0] >= len(indent):
            bases.pop()
        drawn[name] = bases[-1][1] if bases else None
        bases.append((len(indent), name))

    assert drawn == {k.__name__: None if k is errors.RagStackError else k.__bases__[0].__name__ for k in ALL}


@pytest.mark.parametrize("kind", ALL)
def test_only_invalid_requests_are_a_400_or_415(kind: type[errors.RagStackError]) -> None:
    refused = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    assert (error_status(kind.__new__(kind)) in refused) == issubclass(kind, errors.InvalidRequestError)


CALLERS_CAN_ACT = (
    errors.InvalidRequestError,
    errors.NotFoundError,
    errors.JobConflictError,
    errors.DocumentExistsError,
    errors.LimitReachedError,
    errors.NotAllowedError,
    errors.NotAuthenticatedError,
    errors.ThrottledError,
    errors.ModelThrottledError,
)


class Counted:
    def __init__(self) -> None:
        self.names: list[str] = []

    def add_metric(self, name: str, unit: str, value: float) -> None:
        assert (unit, value) == ("Count", 1)
        self.names.append(name)


@pytest.mark.parametrize("kind", ALL)
def test_only_what_a_caller_can_act_on_is_a_client_error(kind: type[errors.RagStackError]) -> None:
    assert (error_status(kind.__new__(kind)) < HTTPStatus.INTERNAL_SERVER_ERROR) == issubclass(kind, CALLERS_CAN_ACT)


@pytest.mark.parametrize(
    ("error", "code", "counted"),
    [
        (errors.AccessDeniedError("x"), "UpstreamAccessDenied", [DEPLOYMENT_FAULTS]),
        (errors.KnowledgeBaseNotFoundError("x"), "KnowledgeBaseNotFound", [DEPLOYMENT_FAULTS]),
        (errors.CollectionNotFoundError("x"), "CollectionNotFound", [DEPLOYMENT_FAULTS]),
        (errors.ModelAccessError("x"), "ModelAccess", [DEPLOYMENT_FAULTS]),
        (errors.ConfigurationError("x"), "Configuration", [DEPLOYMENT_FAULTS]),
        (errors.ScopeTooLongError("x"), "ScopeTooLong", [DEPLOYMENT_FAULTS]),
        (errors.ThrottledError("x"), "Throttled", [UPSTREAM_THROTTLES]),
        (errors.ModelThrottledError("x"), "ModelThrottled", [UPSTREAM_THROTTLES]),
        (errors.ServiceUnavailableError("x"), "ServiceUnavailable", []),
        (errors.InvalidFilterError("x"), "InvalidFilter", []),
        (errors.UnknownCollectionError("x"), "UnknownCollection", []),
    ],
    ids=lambda value: type(value).__name__,
)
def test_lost_permissions_and_throttling_raise_alarms(
    error: errors.RagStackError, code: str, counted: list[str]
) -> None:
    metrics = Counted()

    record_failure(error, metrics)

    assert (error_code(error), metrics.names) == (code, counted)


@pytest.mark.parametrize(
    ("code", "counted", "advice"),
    [
        ("AccessDeniedException", [DEPLOYMENT_FAULTS], "its operator finds the cause in the log"),
        ("NoSuchBucket", [DEPLOYMENT_FAULTS], "its operator finds the cause in the log"),
        ("InternalServerError", [], "may succeed later"),
    ],
)
def test_a_refusal_by_the_registry_is_permanent(code: str, counted: list[str], advice: str) -> None:
    metrics = Counted()

    with (
        pytest.raises(errors.RegistryError, match=advice) as caught,
        failing_as(errors.RegistryError, "The document registry could not be reached"),
    ):
        raise ClientError({"Error": {"Code": code, "Message": "no"}}, "GetItem")

    assert record_failure(caught.value, metrics) == HTTPStatus.BAD_GATEWAY
    assert metrics.names == counted


def test_an_error_that_its_own_group_caused_can_be_logged() -> None:
    error = errors.ThrottledError("too many")
    error.__cause__ = ExceptionGroup("all", [error])

    assert errors.loggable(error) == "too many"


@pytest.mark.parametrize(
    ("source", "logged"),
    [
        ({"year": {"$gt": "SECRET"}}, "InvalidFilter greaterThan(year)"),
        ({"a": {"b": 1}}, "InvalidFilter a"),
        ({"$not": {"corpus": ["SECRET"]}}, "InvalidFilter corpus"),
        ({"corpus": {"$in": "equals(SECRET, 1)"}}, "InvalidFilter in(corpus)"),
        ({"$and": ["equals(SECRET, 1)"]}, "InvalidFilter"),
        ({"$and": "x: SECRET"}, "InvalidFilter"),
        ({"$not": {"name": {"$startsWith": "SECRET"}}}, "InvalidFilter startsWith(name)"),
    ],
)
def test_the_log_of_a_rejected_filter_omits_its_values(source: dict[str, Any], logged: str) -> None:
    with pytest.raises(errors.InvalidFilterError) as caught:
        filters.to_bedrock(filters.parse(source))

    assert errors.loggable(caught.value) == logged


def test_an_error_that_joins_others_is_logged_as_they_are() -> None:
    with pytest.raises(errors.InvalidFilterError) as caught:
        filters.to_bedrock(filters.parse({"ssn": {"$not": {"$startsWith": "secret"}}}))
    joined = errors.RetrievalError(f"Every backend failed: {caught.value}")
    joined.__cause__ = ExceptionGroup("all", [caught.value, errors.ThrottledError("send fewer requests")])

    assert "secret" not in errors.loggable(joined)
    assert "InvalidFilter" in errors.loggable(joined)
    assert "send fewer requests" in errors.loggable(joined)
