"""The OpenAPI document of the whole interface: the routes of all functions.

It corrects the framework's own description where that would be wrong.
"""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

from aws_lambda_powertools.event_handler import APIGatewayRestResolver
from pydantic.json_schema import models_json_schema

from ragstack_common.http.powertools import TOOLS, serve
from ragstack_common.http.route_table import ROUTES
from ragstack_common.http.routes import add_routes
from ragstack_common.http.tool_models import ToolFailure, ToolInput, ToolList, ToolSuccess
from ragstack_common.http.view_route import add_view
from ragstack_common.services.ask_models import EVENTS, AskRequest, AskResponse
from ragstack_common.services.conversation_models import ConversationTurn
from ragstack_common.services.error_models import Error
from ragstack_common.settings.access import TOKEN_KINDS, AccessSettings, AuthKind

if TYPE_CHECKING:
    from pydantic import BaseModel


_EVENT: Final = "AskEvent"

_SECURITY_SCHEMES: Final[Mapping[AuthKind, Mapping[str, Any]]] = {
    AuthKind.IAM: {
        "type": "apiKey",
        "name": "Authorization",
        "in": "header",
        "x-amazon-apigateway-authtype": "awsSigv4",
        "description": "AWS Signature Version 4 for the service execute-api",
    },
    AuthKind.API_KEY: {"type": "apiKey", "name": "x-api-key", "in": "header", "description": "A key of this API"},
}
"""Source: API Gateway developer guide, "x-amazon-apigateway-authtype"."""

_ERRORS: Final[Mapping[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "The request has no valid token, or no other valid proof of who sends it: sign in",
    HTTPStatus.FORBIDDEN: "The caller lacks the right",
    HTTPStatus.NOT_FOUND: "What the request names is unknown, or not known yet",
    HTTPStatus.CONFLICT: "A job of that kind is queued or running",
}

_REFERENCE: Final = "#/components/schemas/{model}"


def describe(app: APIGatewayRestResolver, base_url: str, access: AccessSettings) -> str:
    """Return the OpenAPI document as JSON, given the routes of the query function.

    The base URL has no slash at the end.
    """
    others = APIGatewayRestResolver(enable_validation=True)
    _add_answers(others)
    add_routes(others, _never, _never)
    add_view(others, _never, _never)
    described, more = _framework_description(app), _framework_description(others)
    described["paths"] |= more["paths"]
    _schemas(described).update(_schemas(more))
    _correct(described)
    described["servers"] = [{"url": base_url}]
    if schemes := {str(kind): _scheme(kind, access) for kind in access.api_auth if kind is not AuthKind.NONE}:
        described["components"]["securitySchemes"] = schemes
        described["security"] = [{name: []} for name in schemes]
    return json.dumps(described)


def _scheme(kind: AuthKind, access: AccessSettings) -> Mapping[str, Any]:
    if kind not in TOKEN_KINDS:
        return _SECURITY_SCHEMES[kind]
    return {
        "type": "openIdConnect",
        "openIdConnectUrl": f"{(access.oidc_issuer or '').rstrip('/')}/.well-known/openid-configuration",
        "description": "A token of this issuer, in the header Authorization: Bearer TOKEN",
    }


def find_base_url(event: Mapping[str, Any]) -> str:
    """Return the URL of the API that received an event of API Gateway, with its stage.

    The event of the local one has no domain, so the request's host is used.
    """
    context = event["requestContext"]
    if domain := context.get("domainName"):
        path: str = context["path"]
        return f"https://{domain}" + path.removesuffix(ROUTES["openapi"].path)
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    scheme = headers.get("x-forwarded-proto", "http")
    local_path = f"/_aws/execute-api/{context['apiId']}/{context['stage']}"
    return f"{scheme}://{headers.get('host', 'localhost')}{local_path}"


def _never() -> NoReturn:
    raise AssertionError("these routes are only described here")


def _add_answers(app: APIGatewayRestResolver) -> None:
    """Add the routes of the function answers, whose framework has no descriptions."""

    @serve(app, "ask")
    def ask(request: AskRequest) -> AskResponse:  # noqa: ARG001 - described only
        """Answer a question from the documents, with verified citations."""
        _never()

    @serve(app, "ask_stream")
    def ask_stream(request: AskRequest) -> AskResponse:  # noqa: ARG001 - the same
        """Answer with server-sent events: sources, then token and citation, and done or error at the end."""
        _never()


def _framework_description(app: APIGatewayRestResolver) -> dict[str, Any]:
    subject = "Search your documents, ask questions about them, and manage their ingestion"
    described: dict[str, Any] = json.loads(
        app.get_openapi_json_schema(title="RAGStack", version="1", description=subject)
    )
    return described


def _schemas(described: dict[str, Any]) -> dict[str, Any]:
    schemas: dict[str, Any] = described.setdefault("components", {}).setdefault("schemas", {})
    return schemas


def _correct(described: dict[str, Any]) -> None:
    """Complete the framework's description: the real error responses, and the form of the tools."""
    schemas = _schemas(described)
    for name in ("HTTPValidationError", "ResponseValidationError", "ValidationError"):
        schemas.pop(name, None)
    modes: list[tuple[type[BaseModel], Literal["validation", "serialization"]]] = [
        *((model, "validation") for model in (Error, ToolList, ToolInput, ToolSuccess, ToolFailure)),
        *((model, "serialization") for model in EVENTS.values()),
    ]
    _, more = models_json_schema(modes, ref_template=_REFERENCE)
    schemas |= more["$defs"] | {_EVENT: _event()}
    # Kept as it was given, and returned without being read.
    answer = {"$ref": _REFERENCE.format(model=AskResponse.__name__)}
    schemas[ConversationTurn.__name__]["properties"]["response"]["anyOf"] = [answer, {"type": "null"}]
    for name, route in ROUTES.items():
        if not route.summary:
            continue
        operation = described["paths"][route.path][route.method.lower()]
        operation["operationId"] = name
        statuses = {*route.errors}
        if route.right is None:
            operation["security"] = []
        else:
            operation["x-ragstack-right"] = route.right
            statuses |= {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
        is_tool, is_post = route.path.startswith(TOOLS), route.method == "POST"
        takes_input = "requestBody" in operation or "parameters" in operation
        failure = "ToolFailure" if is_tool else "Error"
        responses = operation["responses"]
        responses.pop("422", None)
        if takes_input or is_post:
            responses["400"] = _response("The request must be changed", failure)
        responses |= {str(int(status)): _response(_ERRORS[status], failure) for status in sorted(statuses)}
        responses["429"] = _response("Too many requests a second, here or at AWS: wait, then send it again", failure)
        responses["502"] = _response("A service failed, or refuses the deployment's role", failure)
        responses["default"] = _response("The request failed; the message says why", failure)
        if name == "ask_stream":
            responses["200"] = _stream()
        if is_tool:
            responses["200"] = _response("Done", "ToolSuccess" if is_post else "ToolList")
        if is_tool and is_post:
            operation["requestBody"] = {"required": True, "content": _content("ToolInput")}


def _event() -> dict[str, Any]:
    """Return the schema of an event: its name and its data."""
    kinds = [
        {
            "type": "object",
            "properties": {"event": {"const": name}, "data": {"$ref": _REFERENCE.format(model=model.__name__)}},
            "required": ["event", "data"],
        }
        for name, model in EVENTS.items()
    ]
    return {"title": _EVENT, "description": "An event of a streamed answer; data is JSON.", "oneOf": kinds}


def _stream() -> dict[str, Any]:
    """Return the response of a stream, which is text for clients that read it whole."""
    events = {"$ref": _REFERENCE.format(model=_EVENT)}
    schema = {"type": "string", "contentMediaType": "text/event-stream", "contentSchema": events}
    return {"description": "The events, as they come", "content": {"text/event-stream": {"schema": schema}}}


def _response(description: str, schema: str) -> dict[str, Any]:
    return {"description": description, "content": _content(schema)}


def _content(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _REFERENCE.format(model=schema)}}}
