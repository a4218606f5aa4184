"""The tree of errors is the one that is drawn, and every one of them has an answer over HTTP."""

import re
from http import HTTPStatus
from typing import Any

import pytest

from ragstack_common import errors, filters
from ragstack_common.error_responses import status_of


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
def test_an_error_of_the_caller_is_a_client_error_and_no_other_is_a_400(kind: type[errors.RagStackError]) -> None:
    refused = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    assert (status_of(kind.__new__(kind)) in refused) == issubclass(kind, errors.InvalidRequestError)


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
def test_a_log_of_a_rejected_filter_has_the_operator_and_the_attribute_but_no_value(
    source: dict[str, Any], logged: str
) -> None:
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
