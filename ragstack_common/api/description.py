"""The description of the whole interface in OpenAPI: this function's routes and those of the function for documents.

Where the framework's own description would not be true, it is corrected.
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
                "code": {"type": "string", "description": "For programs, such as InvalidFilter"},
                "message": {"type": "string", "description": "For people: one line that says what to do"},
                "details": {
                    "type": "array",
                    "description": "Each member of the body that does not fit",
                    "items": {
                        "type": "object",
                        "required": ["member", "problem"],
                        "properties": {"member": {"type": "string"}, "problem": {"type": "string"}},
                    },
                },
                "requestId": {"type": "string", "description": "The log has the request under this id"},
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
    "properties": {"input": {"type": "object", "description": "As the tool's input_schema in GET /tools has it"}},
}

_TOOL_SUCCESS: Final[Mapping[str, Any]] = {
    "title": "ToolSuccess",
    "type": "object",
    "required": ["success", "output", "stats"],
    "properties": {
        "success": {"const": True},
        "output": {"type": "object", "description": "As the tool's output_schema in GET /tools has it"},
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
"""Where the local stack has its APIs, each by id and stage."""

_OF_THE_FRAMEWORK: Final = ("HTTPValidationError", "ResponseValidationError", "ValidationError")

OK: Final = str(HTTPStatus.OK.value)
BAD_REQUEST: Final = str(HTTPStatus.BAD_REQUEST.value)
NOT_FOUND: Final = str(HTTPStatus.NOT_FOUND.value)
CONFLICT: Final = str(HTTPStatus.CONFLICT.value)
FRAMEWORK_STATUS: Final = str(HTTPStatus.UNPROCESSABLE_ENTITY.value)
EVERY_OTHER: Final = "default"
_TITLE: Final = "RAGStack"
_VERSION: Final = "1"
_SUBJECT: Final = "Search over your documents, and what becomes of each document on its way there"


def describe(app: APIGatewayRestResolver, base_url: str, auth: str | None) -> str:
    """Describe the interface as JSON.

    Args:
        app: The routes of the function for searches.
        base_url: Where every path begins, without a slash at the end.
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
    """Return the address of the API that a request for the description came to, with its stage.

    Args:
        event: API Gateway's. The local one names no domain, so that the request's own host has to do.
    """
    context = event["requestContext"]
    if domain := context.get("domainName"):
        return f"https://{domain}{context['path'].removesuffix(_PATH)}"
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    scheme = headers.get("x-forwarded-proto", "http")
    return f"{scheme}://{headers.get('host', 'localhost')}{_LOCAL_PATH}/{context['apiId']}/{context['stage']}"


def _never() -> NoReturn:
    raise AssertionError("these routes are described here, and called elsewhere")


def _framework_description(app: APIGatewayRestResolver) -> dict[str, Any]:
    text = app.get_openapi_json_schema(title=_TITLE, version=_VERSION, description=_SUBJECT)
    described: dict[str, Any] = json.loads(text)
    return described


def _schemas(described: dict[str, Any]) -> dict[str, Any]:
    schemas: dict[str, Any] = described.setdefault("components", {}).setdefault("schemas", {})
    return schemas


def _correct(described: dict[str, Any]) -> None:
    """Complete what the framework wrote: the errors that are really answered, and the tools' own form."""
    schemas = _schemas(described)
    for name in _OF_THE_FRAMEWORK:
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
                responses[NOT_FOUND] = _response("There is nothing of that id, or not yet", failure)
            if (method, path) == ("post", "/api/ingestion-jobs"):
                responses[CONFLICT] = _response("A job of that kind is under way", failure)
            responses[EVERY_OTHER] = _response("It failed, and this is why", failure)
            if path.startswith("/tools"):
                responses[OK] = _response("Done", "ToolSuccess" if method == "post" else "ToolList")
                if method == "post":
                    operation["requestBody"] = {"required": True, "content": _content("ToolInput")}


def _response(description: str, schema: str) -> dict[str, Any]:
    return {"description": description, "content": _content(schema)}


def _content(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
