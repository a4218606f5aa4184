"""Which operation a method and path belong to."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from botocore.loaders import create_loader
from botocore.model import OperationModel, ServiceModel

from local_bedrock.faults import UnknownRoute
from local_bedrock.wire.messages import Request

# One endpoint serves all of them. Where several have a route in common (/tags/{resourceArn}), the name under which the
# request is signed tells them apart; of the services that have one name, and without a signature, the first wins.
SERVICES: Final = ("bedrock-agent", "bedrock-agent-runtime", "bedrock-runtime", "s3vectors")


@dataclass(frozen=True)
class Route:
    """One operation and the pattern of its paths."""

    operation: OperationModel
    method: str
    pattern: re.Pattern[str]


class Router:
    """Finds the operation of a request."""

    def __init__(self, services: Iterable[str] = SERVICES) -> None:
        # Not through a session: that would fail on settings of AWS that nothing here needs.
        loader = create_loader()
        models = [ServiceModel(loader.load_service_model(service, "service-2"), service) for service in services]
        self._routes = [route for model in models for route in _routes(model)]

    def find(self, request: Request) -> tuple[OperationModel, dict[str, str]]:
        """Return the operation and the members that stand in the path, decoded.

        Raises:
            UnknownRoute: No operation has this method and path.
        """
        path = request.path.rstrip("/") or "/"
        matches = [
            (route.operation, match)
            for route in self._routes
            if route.method == request.method and (match := route.pattern.fullmatch(path))
        ]
        if len(matches) > 1:
            name = _signed_for(request.headers.get("authorization", ""))
            matches.sort(key=lambda found: found[0].service_model.signing_name != name)
        for operation, match in matches[:1]:
            return operation, {label: unquote(value) for label, value in match.groupdict().items()}
        raise UnknownRoute(f"{request.method} {request.path} is no operation of {' or '.join(SERVICES)}")


def _signed_for(authorization: str) -> str | None:
    """Return the service of the credential scope, ``KEY/DATE/REGION/SERVICE/aws4_request``.

    Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-signing-elements.html
    """
    scope = authorization.partition("Credential=")[2].partition(",")[0].split("/")
    return scope[-2] if len(scope) > 1 else None


def _routes(model: ServiceModel) -> list[Route]:
    operations = [model.operation_model(name) for name in model.operation_names]
    # Fixed segments win over labels: "/a/list" before "/a/{id}".
    operations.sort(key=lambda operation: (operation.http["requestUri"].count("{"), operation.name))
    return [Route(operation, operation.http["method"], _pattern(operation)) for operation in operations]


def _pattern(operation: OperationModel) -> re.Pattern[str]:
    template = operation.http["requestUri"].split("?")[0].rstrip("/") or "/"
    parts = re.split(r"\{(\w+\+?)\}", template)
    pattern = re.escape(parts[0])
    for label, text in zip(parts[1::2], parts[2::2], strict=True):
        pattern += f"(?P<{label.rstrip('+')}>{'.+' if label.endswith('+') else '[^/]+'})" + re.escape(text)
    return re.compile(pattern)
