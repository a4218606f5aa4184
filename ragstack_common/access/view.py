"""A search as one caller sees it."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from ragstack_common.access.callers import Caller
from ragstack_common.access.guard import Guard
from ragstack_common.access.rules import EVERYTHING, Scope
from ragstack_common.core.deadline import in_thread

if TYPE_CHECKING:
    from ragstack_common.search.models import RetrievedChunk

T = TypeVar("T")

_ATTEMPTS: Final = 3


async def search_as(
    guard: Guard,
    caller: Caller,
    search: Callable[[Scope], Awaitable[T]],
    chunks_of: Callable[[T], "Sequence[RetrievedChunk]"],
    *,
    in_registry: bool,
) -> tuple[T, frozenset[str]]:
    """Search within what a caller sees, then check the results again.

    The search uses the rules as they are known, and the check those in effect after it: if the caller's labels changed,
    the search is repeated. So a change counts from the next request on, and costs no call before the search.

    Args:
        guard: The rules.
        caller: Who searches.
        search: Searches within a scope.
        chunks_of: Returns the chunks that were found.
        in_registry: Whether the registry has the documents, with their labels; if not, the chunks' own count.

    Returns:
        What the search returned, and the sources in it that the caller may not see: a document that was relabelled or
        deleted since it was indexed.

    Raises:
        InvalidRequestError: The caller has more labels than a filter can hold.
    """
    rules = guard.loaded_rules
    if rules is None:
        rules = await in_thread(guard.known_rules)
    for _ in range(_ATTEMPTS):
        scope = rules.scope(caller)
        found = await search(scope)
        if scope is EVERYTHING:
            return found, frozenset()
        labels = {chunk.source: chunk.metadata.get(rules.policy.attribute) for chunk in chunks_of(found)}
        if in_registry:
            newest, hidden = await in_thread(partial(guard.check, caller, labels))
        else:
            newest = await in_thread(guard.rules)
            hidden = frozenset(source for source, label in labels.items() if not newest.sees(caller, label))
        if newest.labels(caller) == rules.labels(caller):
            break
        rules = newest
    return found, hidden
