"""Answers questions over HTTP: an ASGI application, which ``run.sh`` serves behind the Lambda Web Adapter."""

from ragstack_common.function import logger, metrics, with_imports_frozen

import os
from functools import cache

from ragstack_common.api.ask import AskService

from ragstack_common.api.asgi import create_app


@cache
def service() -> AskService:
    """Build the service when the server starts and keep it for the life of the container."""
    return AskService.from_env(os.environ, metrics)


app = with_imports_frozen(create_app(service, logger=logger, metrics=metrics))
