"""How callers of a local stack authenticated at its last start, which the next start keeps.

A start that forgot the people of the last one would give all callers all rights, and synthesize the templates again.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ragstack_common.core.json_text import parse_json
from ragstack_common.settings.access import AuthKind, Tenants
from ragstack_local.errors import StackError

LOCAL_AUTH: Final = ((AuthKind.NONE,), (AuthKind.OIDC,), (AuthKind.NONE, AuthKind.OIDC))

FILE: Final = "callers.json"


@dataclass(frozen=True)
class LastCallers:
    """How callers authenticate, and how tenants are separated.

    Attributes:
        access: The access file of people; None for that of the samples.
    """

    auth: tuple[AuthKind, ...]
    access: Path | None = None
    tenants: Tenants = Tenants.LABEL

    @classmethod
    def read(cls, data: Path) -> "LastCallers | None":
        """Read those of the last start on a data folder; None if there was none.

        Raises:
            StackError: The file cannot be read, or has another form.
        """
        file = data / FILE
        try:
            found = parse_json(file.read_text())
            auth = LOCAL_AUTH[LOCAL_AUTH.index(tuple(found["auth"]))]
            access, tenants = found["access"], Tenants(found.get("tenants", Tenants.LABEL))
            return cls(auth, None if access is None else Path(access), tenants)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise StackError(
                f"{file}, with the callers of the last start, cannot be read: choose --auth, and --access with oidc"
            ) from error

    def write(self, data: Path, *, replaces: bool = True) -> None:
        """Keep them for the next start, in place of earlier ones unless *replaces* is false."""
        file = data / FILE
        if not replaces and file.exists():
            return
        kept = {
            "auth": [*self.auth],
            "access": None if self.access is None else str(self.access),
            "tenants": self.tenants,
        }
        # Complete before it has the name.
        new = file.with_suffix(".new")
        new.write_text(json.dumps(kept))
        new.replace(file)
