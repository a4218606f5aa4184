"""Client tokens: the same request under the same token is answered again and not done again."""

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final

from local_bedrock.faults import InvalidRequest
from local_bedrock.store.database import Change

LIFETIME_SECONDS: Final = 600.0
"""AWS forgets a token "within minutes"; ten of them is a guess."""

Answer = dict[str, Any]


def once(
    change: Change, operation: str, scope: str, request: Mapping[str, Any], now: float, act: Callable[[], Answer]
) -> Answer:
    """Run ``act``, unless this token was seen with this request: then return the answer given before.

    Raises:
        InvalidRequest: The token was seen with other parameters.
    """
    token = request.get("clientToken")
    if token is None:
        return act()
    fingerprint = _fingerprint(request)
    change.connection.execute("DELETE FROM client_token WHERE created_at < ?", (now - LIFETIME_SECONDS,))
    row = change.connection.execute(
        "SELECT fingerprint, answer FROM client_token WHERE operation = ? AND scope = ? AND token = ?",
        (operation, scope, token),
    ).fetchone()
    if row is None:
        answer = act()
        change.connection.execute(
            "INSERT INTO client_token VALUES (?, ?, ?, ?, ?, ?)",
            (operation, scope, token, fingerprint, json.dumps(answer), now),
        )
        return answer
    if row[0] != fingerprint:
        raise InvalidRequest(f"The clientToken of this {operation} request was used before with other parameters")
    return dict(json.loads(row[1]))


def _fingerprint(request: Mapping[str, Any]) -> str:
    document = json.dumps(request, sort_keys=True, default=lambda data: sha256(data).hexdigest())
    return sha256(document.encode()).hexdigest()
