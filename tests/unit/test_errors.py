"""The tree of errors is the one that is drawn, and every one of them has an answer over HTTP."""

import re
from http import HTTPStatus

import pytest

from ragstack_common import errors
from ragstack_common.http import STATUS_OF


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
def test_every_error_has_a_status(kind: type[errors.RagStackError]) -> None:
    assert STATUS_OF[kind] in set(HTTPStatus)


@pytest.mark.parametrize("kind", ALL)
def test_an_error_of_the_caller_is_a_client_error_and_no_other_is_a_400(kind: type[Exception]) -> None:
    refused = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    assert (STATUS_OF[kind] in refused) == issubclass(kind, errors.InvalidRequestError)


@pytest.mark.parametrize("kind", ALL)
def test_every_error_says_what_it_means_in_its_docstring(kind: type[Exception]) -> None:
    assert kind.__doc__
