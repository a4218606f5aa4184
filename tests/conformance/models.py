"""The operations of the services as botocore models them, and which of them the local Bedrock has."""

import re
from functools import cache

import botocore.session
from botocore.model import OperationModel, StructureShape

from local_bedrock.service import OPERATIONS

SERVICES = ("bedrock-agent", "bedrock-agent-runtime", "bedrock-runtime", "s3vectors")


@cache
def operations() -> dict[str, OperationModel]:
    """Every operation, by ``service.Name``."""
    session = botocore.session.get_session()
    models = [session.get_service_model(service) for service in SERVICES]
    return {
        f"{model.service_name}.{name}": model.operation_model(name)
        for model in models
        for name in model.operation_names
    }


@cache
def implemented() -> dict[str, OperationModel]:
    """Operations that the local Bedrock has, by name; the first one if several have the same name and route."""
    found: dict[str, OperationModel] = {}
    for operation in operations().values():
        if operation.name in OPERATIONS:
            found.setdefault(operation.name, operation)
    return found


def unsupported() -> dict[str, OperationModel]:
    """Operations that it lacks; a route shared with a supported operation leads to that one."""
    taken = {_route(operation) for operation in implemented().values()}
    return {name: operation for name, operation in operations().items() if _route(operation) not in taken}


def input_of(operation: OperationModel) -> StructureShape:
    """The shape of a request; every operation of these services has one."""
    assert operation.input_shape is not None
    return operation.input_shape


def sharing_a_route(operation: OperationModel) -> list[str]:
    """The names of all operations of the services that HTTP and the signature cannot tell from this one."""
    return [other.name for other in operations().values() if _route(other) == _route(operation)]


def _route(operation: OperationModel) -> tuple[str, str]:
    path = operation.http["requestUri"].split("?")[0].rstrip("/")
    return operation.http["method"], re.sub(r"\{\w+\+?\}", "{}", path)
