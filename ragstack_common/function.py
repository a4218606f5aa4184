"""What all handlers share. They import it before anything else, because it speeds imports up."""

import gc

# What the imports create lives as long as the process. Looking for garbage in it is a tenth of a cold start: 1.65 times
# boto3's instead of 1.47 (benchmarks/cold_start.py).
gc.disable()

import codecs
import os

# No layer has a plugin of pydantic, which would look for one in the metadata of every package.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

import random
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.logging.utils import copy_config_to_registered_loggers
from aws_lambda_powertools.utilities.typing import LambdaContext

from ragstack_common.core.errors import MissingPackageError, RagStackError
from ragstack_common.core.metrics import STACK, STACK_DIMENSION
from ragstack_common.core.snapshots import after_restore
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.settings.tracing import OTLP_ENDPOINT

if TYPE_CHECKING:
    from ragstack_common.search.span_export import FunctionSpans

T = TypeVar("T")

IS_DEPLOYED: Final = "AWS_LAMBDA_FUNCTION_NAME" in os.environ

Handler = Callable[[dict[str, Any], LambdaContext], dict[str, Any]]

logger: Final = Logger()
copy_config_to_registered_loggers(logger, include={LOGGER.name})

# Otherwise, all copies would wait equally long before they repeat a call, and give their traces the same ids.
after_restore(random.seed)

metrics: Final = Metrics()
if stack := os.environ.get(STACK):
    metrics.set_default_dimensions(**{STACK_DIMENSION: stack})


def prepare(*steps: Callable[[], object]) -> None:
    """Do what the first request would wait for while a deployed function starts: these steps, in their order.

    An error is left to the first request, which reports it.
    """
    if IS_DEPLOYED:
        codecs.lookup("idna")  # with which sockets write the names of hosts
        with suppress(RagStackError):
            for step in steps:
                step()


def entry_point(handler: Handler) -> Handler:
    """Add structured logs and metrics to a handler, which is the last that its module defines."""
    decorated: Handler = logger.inject_lambda_context(metrics.log_metrics(handler))
    spans = function_spans()
    return with_imports_frozen(decorated if spans is None else spans.wrap_handler(decorated))


def function_spans() -> "FunctionSpans | None":
    """Return what exports the function's spans; None if the environment names no collector for them."""
    if not os.environ.get(OTLP_ENDPOINT):
        return None
    from ragstack_common.search.span_export import FunctionSpans  # noqa: PLC0415 - takes as long as boto3

    try:
        return FunctionSpans(os.environ)
    except MissingPackageError as error:
        logger.error("No spans are exported: %s", error)  # noqa: TRY400 - the function works without
        return None


def with_imports_frozen(entry: T) -> T:
    """Return the entry, the last that its module defines; from now on, garbage is collected."""
    gc.freeze()
    gc.enable()
    return entry
