"""The description of the whole interface in OpenAPI: this function's routes and those of the function for documents.

Where the framework's own description would not be true, it is corrected.
"""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, NoReturn

from aws_lambda_powertools.event_handler import APIGatewayRestResolver

from ragstack_common.document_api.routes import add_routes

_ERROR: Final[Mapping[str, Any]] = {
    "title": "Error",
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "details"],
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


def describe(app: APIGatewayRestResolver) -> str:
    """Describe the interface as JSON.

    Args:
        app: The routes of the function for searches.
    """
    documents = APIGatewayRestResolver(enable_validation=True)
    add_routes(documents, _never)
    described, more = _framework_description(app), _framework_description(documents)
    described["paths"] |= more["paths"]
    _schemas(described).update(_schemas(more))
    _correct(described)
    return json.dumps(described)


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
