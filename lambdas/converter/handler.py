"""Reads the text of documents whose format the knowledge base does not read, or reads badly."""

from ragstack_common.function import entry_point, metrics

import os
from functools import cache
from typing import Any, Final

from aws_lambda_powertools.utilities.typing import LambdaContext

from ragstack_common.access.policy import policy_from_env
from ragstack_common.ingestion.converting import ConversionService
from ragstack_common.ingestion.messages import parse_messages
from ragstack_common.ingestion.services import Services
from ragstack_common.reading.converting import ConvertingProcess
from ragstack_common.reading.ocr import textract
from ragstack_common.settings.ingestion import TEXTRACT, IngestionSettings

MEMORY_LIMIT: Final = 2048 * 1024**2
"""Bytes of the process that reads files; the function has 3,008 MB."""


@cache
def service() -> ConversionService:
    """Build the service on the first message and keep it for the life of the container."""
    settings = IngestionSettings.from_env(os.environ)
    recognize = textract.recognize if settings.recognition == TEXTRACT else None
    folders = settings.reader_path.split(os.pathsep) if settings.reader_path else ()
    process = ConvertingProcess(MEMORY_LIMIT, settings.recognition, recognize, folders)
    process.start()
    services = Services(settings, metrics=metrics, policy=policy_from_env(os.environ))
    return ConversionService(services, process.convert)


@entry_point
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Convert the documents in a batch; the answer names the messages to deliver again."""
    again = service().process(parse_messages(event), lambda: context.get_remaining_time_in_millis() / 1000)
    return {"batchItemFailures": [{"itemIdentifier": name} for name in again]}
