"""Authorizes the tokens of people for API Gateway."""

from ragstack_common.function import entry_point, logger, metrics, prepare

import os
from functools import cache
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from ragstack_common.access.authorizer import Authorizer
from ragstack_common.core.errors import NotAuthenticatedError, RagStackError
from ragstack_common.core.metrics import DEPLOYMENT_FAULTS


@cache
def service() -> Authorizer:
    """Build the service on the first token and keep it, with the issuer's keys, for the life of the container."""
    return Authorizer.from_env(os.environ)


prepare(service)


@entry_point
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Return a policy; fail with the one message that API Gateway answers with 401."""
    metrics.add_metric("Requests", "Count", 1)
    try:
        return service().authorize(event)
    except NotAuthenticatedError as error:
        logger.warning("refused: %s", error)
        raise RuntimeError("Unauthorized") from None
    except RagStackError:
        # Tokens that are not valid fail as well, so the function's own errors say nothing.
        metrics.add_metric(DEPLOYMENT_FAULTS, "Count", 1)
        logger.exception("the token could not be verified")
        raise
