"""How callers of a local stack proved who they are at its last start, which the next start keeps.

A start that forgot the people of the last one would give everybody all rights, and synthesize the templates again.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ragstack_common.access_config import AuthKind

FILE: Final = "callers.json"
"""Below the data folder."""


@dataclass(frozen=True)
class Callers:
    """How callers prove who they are.

    Attributes:
        auth: `none`, `oidc` or both.
        access: The access file of people; None for that of the samples.
    """

    auth: tuple[AuthKind, ...]
    access: Path | None = None

    @classmethod
    def read(cls, data: Path) -> "Callers | None":
        """Read those of the last start on a data folder; None if there was none, or the file has another form."""
        try:
            found = json.loads((data / FILE).read_text())
            access = found["access"]
            return cls(tuple(AuthKind(kind) for kind in found["auth"]), None if access is None else Path(access))
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write(self, data: Path) -> None:
        """Keep them for the next start."""
        kept = {"auth": [*self.auth], "access": None if self.access is None else str(self.access)}
        (data / FILE).write_text(json.dumps(kept))
