"""A search as one caller sees it."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ragstack_common.access.callers import Caller, Right
from ragstack_common.access.guard import Guard
from ragstack_common.access.rules import EVERYTHING, AccessRules, Scope
from ragstack_common.core.deadline import in_thread
from ragstack_common.core.errors import InvalidFilterError, RegistryError, ScopeTooLongError
from ragstack_common.filters import Clause, Operator, all_of
from ragstack_common.settings.names import SOURCE_URI_KEY

if TYPE_CHECKING:
    from ragstack_common.search.models import RetrievedChunk

T = TypeVar("T")


async def search_as(
    guard: Guard,
    caller: Caller,
    search: Callable[[Scope], Awaitable[T]],
    get_chunks: Callable[[T], "Sequence[RetrievedChunk]"],
    *,
    in_registry: bool,
) -> tuple[T, frozenset[str]]:
    """Search within what a caller sees, then check the results again, and record what the caller sees of them.

    The search uses the rules as they are known, and the check those in effect after it: if the caller's labels changed,
    the search is repeated. So a change counts from the next request on, and costs no call before the search. A search
    that finds documents which were relabelled or deleted since they were indexed is repeated without them, so that they
    are in no count, score or note either.

    If the registry does not have the documents, the labels of the chunks count for those that it does not know.

    Returns:
        What the search returned, and the sources in it that the caller may not see: only if the store cannot search
        without them, or has many of them.

    Raises:
        ScopeTooLongError: The caller has more labels than a search can have.
        RegistryError: The caller's labels changed during each of several searches.
    """
    found, hidden = await _search_and_check(guard, caller, search, get_chunks, in_registry=in_registry)
    guard.saw("searched", caller, (chunk.source for chunk in get_chunks(found) if chunk.source not in hidden))
    return found, hidden


async def _search_and_check(
    guard: Guard,
    caller: Caller,
    search: Callable[[Scope], Awaitable[T]],
    get_chunks: Callable[[T], "Sequence[RetrievedChunk]"],
    *,
    in_registry: bool,
) -> tuple[T, frozenset[str]]:
    rules = guard.loaded_rules
    if rules is None:
        rules = await in_thread(guard.known_rules)
    found, hidden, excluded = None, frozenset[str](), frozenset[str]()
    for _ in range(3):
        scope = rules.scope(caller)
        if scope is EVERYTHING:
            return await search(scope), frozenset()
        try:
            found = await search(_without(scope, excluded))
        except (InvalidFilterError, ScopeTooLongError):
            if found is None:
                raise
            return found, hidden
        labels = _read_labels(get_chunks(found), rules)
        newest, hidden = await in_thread(partial(guard.check, caller, labels, None if in_registry else labels))
        if newest.labels(caller) != rules.labels(caller):
            rules, found, excluded = newest, None, frozenset()
        elif in_registry and hidden - excluded:
            excluded |= hidden
        else:
            break
    if found is None:
        raise RegistryError("The access rules changed during the search, repeatedly; try again")
    return found, hidden


def require_sight(guard: Guard, caller: Caller, chunks: "Sequence[RetrievedChunk]", *, in_registry: bool) -> None:
    """Check that a caller still sees the documents of chunks, in one read for up to 99 documents.

    Raises:
        NotAllowedError: A rule, or a document's label, changed since they were found.
        RegistryError: The rules or the labels cannot be read.
    """
    labels = _read_labels(chunks, guard.known_rules())
    hidden = guard.check(caller, labels, None if in_registry else labels).hidden
    if hidden:
        guard.refuse(caller, Right.READ, min(hidden), "What you may see changed during the answer: ask again")


def _read_labels(chunks: "Sequence[RetrievedChunk]", rules: AccessRules) -> dict[str, Any]:
    return {chunk.source: chunk.metadata.get(rules.policy.attribute) for chunk in chunks}


def _without(scope: Scope, sources: Collection[str]) -> Scope:
    """Leave documents out of what a caller sees."""
    if not sources:
        return scope
    return replace(scope, filter=all_of(scope.filter, Clause(Operator.NOT_IN, SOURCE_URI_KEY, tuple(sorted(sources)))))
