"""Routes for testing with the local Bedrock: faults, metrics, options. No AWS service has them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from local_bedrock.limits.fault_injection import FaultError, FaultInjection, FaultRule
from local_bedrock.options import Options
from local_bedrock.serving.metrics import Metrics

PREFIX: Final = "/_ragstack/"
SECRET: Final = "llm_api_key"  # noqa: S105 - the name of one


class Administration:
    """Answers requests below ``/_ragstack/``.

    Args:
        options: What the local Bedrock was told when it started.
        faults: The rules in force.
        metrics: What was counted.
        timings: What ingestion spent its time on.
    """

    def __init__(
        self, options: Options, faults: FaultInjection, metrics: Metrics, timings: Callable[[], Mapping[str, Any]]
    ) -> None:
        self._options = options
        self._faults = faults
        self._metrics = metrics
        self._timings = timings

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        match request.method, request.url.path.removeprefix(PREFIX):
            case "GET", "faults":
                return JSONResponse(self._described_faults())
            case "PUT", "faults":
                return await self._put_faults(request)
            case "DELETE", "faults":
                self._faults.replace(())
                return JSONResponse(self._described_faults())
            case "GET", "metrics":
                return JSONResponse({"operations": self._metrics.snapshot(), "ingestion": dict(self._timings())})
            case "GET", "options":
                return JSONResponse(_described_options(self._options))
        return _message(
            HTTPStatus.NOT_FOUND,
            f"{request.method} {request.url.path} is not there: GET, PUT or DELETE {PREFIX}faults,"
            f" GET {PREFIX}metrics, GET {PREFIX}options",
        )

    async def _put_faults(self, request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return _message(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Send the rules with Content-Type: application/json")
        try:
            self._faults.replace(_rules(await request.body()))
        except FaultError as error:
            return _message(HTTPStatus.BAD_REQUEST, str(error))
        return JSONResponse(self._described_faults())

    def _described_faults(self) -> dict[str, Any]:
        return {"rules": [{**asdict(rule), "happened": happened} for rule, happened in self._faults.rules()]}


def _rules(body: bytes) -> list[FaultRule]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    rules = document.get("rules") if isinstance(document, dict) else None
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise FaultError('The body is {"rules": [{"operation": "Retrieve", "kind": "throttling"}, ...]}')
    # What GET returned can be put back as it is.
    return [FaultRule.of_mapping({name: rule[name] for name in rule if name != "happened"}) for rule in rules]


def _described_options(options: Options) -> dict[str, Any]:
    document = {name: value for name, value in asdict(options).items() if name != SECRET}
    # JSON has no infinity: a lifted quota is null.
    text = json.dumps(document, default=str).replace("Infinity", "null")
    return dict(json.loads(text))


def _message(status: HTTPStatus, text: str) -> Response:
    return JSONResponse({"message": text}, status)
