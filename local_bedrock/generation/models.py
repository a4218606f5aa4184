"""The names of models that requests bring: which of them could answer."""

import re
from typing import Final

from local_bedrock.faults import InvalidRequest

_ID: Final = re.compile(r"(?:[a-z-]+\.)?[a-z0-9-]+\.[A-Za-z0-9.:_-]+")
_NO_TEXT: Final = re.compile(r"embed|rerank|image|canvas|reel|stable-diffusion|sonic")


def require_text_model(name: str) -> None:
    """Check that an id or ARN may be that of a model that writes text; which models exist is not known here.

    Raises:
        InvalidRequest: It is not of such a form, or names a model for something else.
    """
    if not name.startswith("arn:") and not _ID.fullmatch(name):
        raise InvalidRequest("The provided model identifier is invalid.")
    if _NO_TEXT.search(name.rpartition("/")[2]):
        raise InvalidRequest(
            "This action doesn't support the model that you provided. Try again with a supported text or chat model."
        )


def of_arn(name: str) -> str:
    """Return a model's id without the ARN around it."""
    return name.rpartition("/")[2] if name.startswith("arn:") else name
