"""The OpenAPI document of the whole interface: the routes of the query function and of the documents function.

It corrects the framework's own description where that would be wrong.
"""

import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, NoReturn

from aws_lambda_powertools.event_handler import APIGatewayRestResolver

from ragstack_common.api.routes import add_routes
from ragstack_common.config import API_KEY_AUTH, IAM_AUTH

_ERROR: Final[Mapping[str, Any]] = {
    "title": "Error",
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "details", "requestId"],
            "properties": {
                "code": {"type": "string", "description": "The error code, such as InvalidFilter"},
                "message": {"type": "string", "description": "One line that says what is wrong"},
                "details": {
                    "type": "array",
                    "description": "Each invalid member of the body",
                    "items": {
                        "type": "object",
                        "required": ["member", "problem"],
                        "properties": {"member": {"type": "string"}, "problem": {"type": "string"}},
                    },
                },
                "requestId": {"type": "string", "description": "The id of the request in the log"},
            },
        }
    },
}

_TOOL_LIST: Final[Mapping[str, Any]] = {
    "title": "ToolList",
    "type": "object",
    "required": ["tools"],
    "properties": {
        "tools": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "description", "input_schema", "output_schema"],
                "properties": {
                    "name": {"type": "string"},
                    "description": {"type": "string"},
                    "input_schema": {"type": "object", "description": "JSON schema of the input"},
                    "output_schema": {"type": "object", "description": "JSON schema of the output"},
                },
            },
        }
    },
}

_TOOL_INPUT: Final[Mapping[str, Any]] = {
    "title": "ToolInput",
    "type": "object",
    "required": ["input"],
    "additionalProperties": False,
    "properties": {"input": {"type": "object", "description": "Valid under the tool's input_schema in GET /tools"}},
}

_TOOL_SUCCESS: Final[Mapping[str, Any]] = {
    "title": "ToolSuccess",
    "type": "object",
    "required": ["success", "output", "stats"],
    "properties": {
        "success": {"const": True},
        "output": {"type": "object", "description": "Valid under the tool's output_schema in GET /tools"},
        "stats": {
            "type": "object",
            "required": ["execution_time"],
            "properties": {"execution_time": {"type": "string", "examples": ["1.2s"]}},
        },
    },
}

_TOOL_FAILURE: Final[Mapping[str, Any]] = {
    "title": "ToolFailure",
    "type": "object",
    "required": ["success", "error"],
    "properties": {"success": {"const": False}, "error": {"type": "string"}},
}

_SCHEMAS: Final = {
    schema["title"]: schema for schema in (_ERROR, _TOOL_LIST, _TOOL_INPUT, _TOOL_SUCCESS, _TOOL_FAILURE)
}
_SECURITY_SCHEMES: Final[Mapping[str, Mapping[str, Any]]] = {
    IAM_AUTH: {
        "type": "apiKey",
        "name": "Authorization",
        "in": "header",
        "x-amazon-apigateway-authtype": "awsSigv4",
        "description": "AWS Signature Version 4 for the service execute-api",
    },
    API_KEY_AUTH: {"type": "apiKey", "name": "x-api-key", "in": "header", "description": "A key of this API"},
}
"""Source: API Gateway developer guide, "x-amazon-apigateway-authtype"."""

_PATH: Final = "/openapi.json"
_LOCAL_PATH: Final = "/_aws/execute-api"
"""Where the local stack serves its APIs, each by id and stage."""

_FRAMEWORK_SCHEMAS: Final = ("HTTPValidationError", "ResponseValidationError", "ValidationError")

OK: Final = str(HTTPStatus.OK.value)
BAD_REQUEST: Final = str(HTTPStatus.BAD_REQUEST.value)
NOT_FOUND: Final = str(HTTPStatus.NOT_FOUND.value)
CONFLICT: Final = str(HTTPStatus.CONFLICT.value)
FRAMEWORK_STATUS: Final = str(HTTPStatus.UNPROCESSABLE_ENTITY.value)
EVERY_OTHER: Final = "default"
_TITLE: Final = "RAGStack"
_VERSION: Final = "1"
_SUBJECT: Final = "Search your documents, and manage their ingestion"


def describe(app: APIGatewayRestResolver, base_url: str, auth: str | None) -> str:
    """Return the OpenAPI document as JSON.

    Args:
        app: The routes of the query function.
        base_url: The base of every path, without a slash at the end.
        auth: One of ``config.API_AUTHS``; None if callers do not authenticate.
    """
    documents = APIGatewayRestResolver(enable_validation=True)
    add_routes(documents, _never)
    described, more = _framework_description(app), _framework_description(documents)
    described["paths"] |= more["paths"]
    _schemas(described).update(_schemas(more))
    _correct(described)
    described["servers"] = [{"url": base_url}]
    if auth is not None:
        described["components"]["securitySchemes"] = {auth: _SECURITY_SCHEMES[auth]}
        described["security"] = [{auth: []}]
    return json.dumps(described)


def base_url_of(event: Mapping[str, Any]) -> str:
    """Return the URL of the API that received the request, with its stage.

    Args:
        event: API Gateway's. The local one names no domain, so the request's host is used.
    """
    context = event["requestContext"]
    if domain := context.get("domainName"):
        return f"https://{domain}{context['path'].removesuffix(_PATH)}"
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    scheme = headers.get("x-forwarded-proto", "http")
    return f"{scheme}://{headers.get('host', 'localhost')}{_LOCAL_PATH}/{context['apiId']}/{context['stage']}"


def _never() -> NoReturn:
    raise AssertionError("these routes are only described here")


def _framework_description(app: APIGatewayRestResolver) -> dict[str, Any]:
    text = app.get_openapi_json_schema(title=_TITLE, version=_VERSION, description=_SUBJECT)
    described: dict[str, Any] = json.loads(text)
    return described


def _schemas(described: dict[str, Any]) -> dict[str, Any]:
    schemas: dict[str, Any] = described.setdefault("components", {}).setdefault("schemas", {})
    return schemas


def _correct(described: dict[str, Any]) -> None:
    """Complete the framework's description: the real error responses, and the form of the tools."""
    schemas = _schemas(described)
    for name in _FRAMEWORK_SCHEMAS:
        schemas.pop(name, None)
    schemas |= _SCHEMAS
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            # Generated clients name their functions after it: `retrieve`, without path and method.
            suffix = re.sub(r"\W", "_", path) + f"_{method}"
            operation["operationId"] = operation["operationId"].removesuffix(suffix)
            responses = operation["responses"]
            responses.pop(FRAMEWORK_STATUS, None)
            failure = "ToolFailure" if path.startswith("/tools") else "Error"
            if method == "post" or "parameters" in operation:
                responses[BAD_REQUEST] = _response("The request must be changed", failure)
            if path.endswith("/{id}"):
                responses[NOT_FOUND] = _response("The id is unknown, or not known yet", failure)
            if path in ("/api/failures/replay", "/api/failures/discard"):
                responses[NOT_FOUND] = _response("A document, job or message is unknown; nothing was done", failure)
            if (method, path) == ("post", "/api/ingestion-jobs"):
                responses[CONFLICT] = _response("A job of that kind is queued or running", failure)
            responses[EVERY_OTHER] = _response("The request failed; the message says why", failure)
            if path.startswith("/tools"):
                responses[OK] = _response("Done", "ToolSuccess" if method == "post" else "ToolList")
                if method == "post":
                    operation["requestBody"] = {"required": True, "content": _content("ToolInput")}


def _response(description: str, schema: str) -> dict[str, Any]:
    return {"description": description, "content": _content(schema)}


def _content(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
