"""A model with one answer."""

import asyncio
from collections.abc import AsyncGenerator

from ragstack_common.answers.models.protocol import ModelEnd, ModelPiece, ModelRequest, ModelText
from ragstack_common.answers.quote.extractive import ExtractiveProvider


class ScriptedModel(ExtractiveProvider):
    """Answers every request in the same way, or fails."""

    quotes = False

    def __init__(self, said: str | Exception, seconds: float = 0) -> None:
        self.requests: list[ModelRequest] = []
        self._said = said
        self._seconds = seconds

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        self.requests.append(request)
        await asyncio.sleep(self._seconds)
        if isinstance(self._said, Exception):
            raise self._said
        yield ModelText(self._said)
        yield ModelEnd("end_turn", 1, 1, "small")
