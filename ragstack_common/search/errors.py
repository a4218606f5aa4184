"""A failed search, for logs."""

import json
import re
from typing import Final

from botocore.exceptions import ClientError

from ragstack_common.filters import Filter, clauses_of

_MAX_SHOWN: Final = 16
"""Characters of a filter's value by which it is recognized in a message that may have shortened it."""


def describe(error: Exception, query: str, filters: Filter | None = None) -> str:
    """Return the error with its full message, in one line, for logs.

    The service quotes a value that it refuses. The query and the values of the filter are left out, because they can
    be personal data.
    """
    if isinstance(error, ClientError):
        details = error.response.get("Error", {})
        text = f"{details.get('Code', 'Unknown')}: {details.get('Message', '')}"
    else:
        text = f"{type(error).__name__}: {error}"
    text = text.replace(f"'{query}'", "'...'")
    clauses = clauses_of(filters) if filters is not None else ()
    values = {str(value) for clause in clauses for value in clause.values}
    for value in sorted(filter(None, values), key=len, reverse=True):
        # The service may shorten a long value, and escapes it where it quotes JSON.
        for form in {value, json.dumps(value)[1:-1]}:
            prefix, more = form[:_MAX_SHOWN], r"[^'\"]*" if len(form) > _MAX_SHOWN else r"(?!\w)"
            text = re.sub(rf"(?<!\w){re.escape(prefix)}{more}", "...", text)
    return " ".join(text.split())
