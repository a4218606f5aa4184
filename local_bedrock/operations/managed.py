"""Knowledge bases of type MANAGED and the connectors of their data sources: what requests may have, and defaults.

Sources: Amazon Bedrock User Guide, kb-managed-create, kb-managed-connect-ds, kb-managed-ds-s3, kb-managed-ds-custom and
kb-managed-customize-ingestion. Messages about the types and versions of connectors, and about chunking, are those that
users of the service report.
"""

import json
from typing import Any, Final

from local_bedrock.http.errors import InvalidRequest
from local_bedrock.operations.context import Answer, Request, refuse_unsupported
from local_bedrock.reading import selection
from local_bedrock.reading.selection import InvalidConnectorError
from local_bedrock.store.resources import CONNECTOR, DataSource, StoredKnowledgeBase
from ragstack_common.core.uris import resource_id
from ragstack_common.settings.names import CONNECTOR_SOURCE

_CONFIGURATION: Final = "managedKnowledgeBaseConfiguration"
_DIMENSIONS: Final = 1024

_EMBEDDING_MODELS: Final = (
    "amazon.titan-embed-text-v2:0",
    "cohere.embed-english-v3",
    "cohere.embed-multilingual-v3",
    "cohere.embed-v4:0",
)
"""Source: Amazon Bedrock User Guide, kb-managed-create, without the model for pictures, audio and video."""

_CONNECTORS: Final = (
    *("S3", "ONEDRIVE", "ZENDESK", "SALESFORCE", "BOX", "DROPBOX", "SHAREPOINT", "GOOGLEDRIVE", "WEB", "CUSTOM"),
    *("CONFLUENCEONPREM", "CONFLUENCE", "SERVICENOW"),
)
"""Source: the service's message about an unknown type, as users report it."""

_VERSION: Final = "1"


def knowledge_base_configuration(request: Request) -> Answer:
    """Return the ``knowledgeBaseConfiguration`` of a MANAGED knowledge base with its defaults.

    Raises:
        InvalidRequest: A member belongs to another type, or the embedding model is not supported.
    """
    if "storageConfiguration" in request:
        raise InvalidRequest(
            "A knowledge base of type MANAGED has no storageConfiguration: omit it, or create one of type VECTOR"
        )
    configuration = request["knowledgeBaseConfiguration"]
    if others := sorted(set(configuration) - {"type", _CONFIGURATION}):
        raise InvalidRequest(
            f"A knowledge base of type MANAGED cannot have {' or '.join(others)}: it takes {_CONFIGURATION}"
        )
    managed = {"embeddingModelType": "MANAGED", **configuration.get(_CONFIGURATION, {})}
    if managed["embeddingModelType"] == "CUSTOM":
        _check_embedding_model(managed)
    elif present := [name for name in ("embeddingModelArn", "embeddingModelConfiguration") if name in managed]:
        raise InvalidRequest(
            f"The embeddingModelType MANAGED cannot have {' or '.join(present)}: omit it, or choose CUSTOM"
        )
    refuse_unsupported(managed, "supplementalDataStorageConfiguration")
    return {**configuration, _CONFIGURATION: managed}


def _check_embedding_model(managed: Request) -> None:
    for name in ("embeddingModelArn", "embeddingModelConfiguration"):
        if name not in managed:
            raise InvalidRequest(f"The embeddingModelType CUSTOM needs {name}")
    model = resource_id(managed["embeddingModelArn"])
    if model not in _EMBEDDING_MODELS:
        raise InvalidRequest(
            f"The local Bedrock supports {', '.join(_EMBEDDING_MODELS)} in a managed knowledge base, not {model}"
        )
    chosen = managed["embeddingModelConfiguration"].get("bedrockEmbeddingModelConfiguration", {})
    if chosen.get("dimensions") != _DIMENSIONS or chosen.get("embeddingDataType", "FLOAT32") != "FLOAT32":
        raise InvalidRequest(
            f"The embedding model of a managed knowledge base must have {_DIMENSIONS} dimensions of type FLOAT32"
        )


def data_source_request(base: StoredKnowledgeBase, request: Request) -> Answer:
    """Return the request for a data source of a MANAGED knowledge base with the defaults of its connector.

    Raises:
        InvalidRequest: The knowledge base or the local Bedrock does not support it.
    """
    configuration = request["dataSourceConfiguration"]
    if configuration["type"] != CONNECTOR_SOURCE:
        raise InvalidRequest(
            "Unsupported data source type for MANAGED knowledge base type."
            f" Use {CONNECTOR_SOURCE}, with the type S3 or CUSTOM in its connectorParameters."
        )
    if others := sorted(set(configuration) - {"type", CONNECTOR}):
        raise InvalidRequest(f"A data source of type {CONNECTOR_SOURCE} cannot have {' or '.join(others)}")
    connector = configuration.get(CONNECTOR, {})
    parameters = _parameters(connector.get("connectorParameters", {}))
    if parameters["type"] == "CUSTOM":
        for name in ("syncSchedule", "deletionProtectionConfiguration"):
            if name in connector:
                raise InvalidRequest(f"The connector CUSTOM does not support {name}: omit it")
    _check_ingestion(base, request.get("vectorIngestionConfiguration", {}))
    media = {
        "imageExtractionConfiguration": {"imageExtractionStatus": "ENABLED"},
        **connector.get("mediaExtractionConfiguration", {}),
    }
    stored = {**connector, "connectorParameters": parameters, "mediaExtractionConfiguration": media}
    return {**request, "dataSourceConfiguration": {**configuration, CONNECTOR: stored}}


def _parameters(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise InvalidRequest(
            "The connectorParameters must be an object: parse the JSON that GetDataSource returns before you send it"
        )
    if not given.get("type"):
        raise InvalidRequest("Connector type is required in connector parameters")
    if given["type"] not in _CONNECTORS:
        raise InvalidRequest(
            f"Invalid connector type '{given['type']}'. Supported types are: {', '.join(_CONNECTORS)}."
        )
    if "version" not in given:
        raise InvalidRequest("The 'version' field is required in connector parameters.")
    if given["version"] != _VERSION:
        raise InvalidRequest(f"Invalid connector version '{given['version']}'. Supported versions are: {_VERSION}.")
    if given["type"] not in ("S3", "CUSTOM"):
        raise InvalidRequest(f"The local Bedrock supports the connectors S3 and CUSTOM, not {given['type']}")
    if not isinstance(given.get("aclEnabled", False), bool):
        raise InvalidRequest("The aclEnabled of connector parameters must be true or false")
    parameters = {"aclEnabled": False, **given}
    filters = parameters.get("filterConfiguration", {})
    if given["type"] == "S3" and isinstance(filters, dict):
        parameters["filterConfiguration"] = {"maxFileSizeInMegaBytes": selection.DEFAULT_MAX_MEGABYTES, **filters}
    return parameters


def _check_ingestion(base: StoredKnowledgeBase, ingestion: Request) -> None:
    refuse_unsupported(ingestion, "customTransformationConfiguration", "contextEnrichmentConfiguration")
    parsing = ingestion.get("parsingConfiguration", {}).get("parsingStrategy", "SMART_PARSING")
    if parsing != "SMART_PARSING":
        raise InvalidRequest(
            f"The parsing strategy {parsing} is not supported for managed knowledge bases: use SMART_PARSING"
        )
    chunking = ingestion.get("chunkingConfiguration")
    if chunking is None:
        return
    if not base.embedding_model:
        raise InvalidRequest(
            "A chunking strategy cannot be specified with a managed embedding model."
            " Omit chunkingConfiguration to use the default."
        )
    if chunking["chunkingStrategy"] not in ("FIXED_SIZE", "NONE"):
        raise InvalidRequest(
            f"The chunking strategy {chunking['chunkingStrategy']} is not supported for managed knowledge bases:"
            " use FIXED_SIZE or NONE"
        )


def connector_failure(source: DataSource) -> str | None:
    """Return why a data source will be FAILED; None if its connector works.

    The service accepts such parameters and reports them afterwards.
    """
    if source.type == "S3" and source.connector is not None:
        try:
            selection.of_connector(source.connector["connectorParameters"])
        except InvalidConnectorError as error:
            return str(error)
    return None


def check_connector_unchanged(source: DataSource, request: Request) -> None:
    """Check the parameters that an update must not change.

    Raises:
        InvalidRequest: It changes the connector's type, or ``aclEnabled`` of S3.
    """
    assert source.connector is not None
    before = source.connector["connectorParameters"]
    after = request["dataSourceConfiguration"][CONNECTOR]["connectorParameters"]
    if after["type"] != before["type"]:
        raise InvalidRequest(f"The type of a connector cannot be changed: it is {before['type']}")
    if after["type"] == "S3" and after["aclEnabled"] != before["aclEnabled"]:
        raise InvalidRequest(
            "The aclEnabled of a connector S3 cannot be changed: send it as it is, or create another data source"
        )


def described_configuration(source: DataSource) -> Answer:
    """Return the ``dataSourceConfiguration`` as the service does, with the connector's parameters as JSON text."""
    configuration = source.request["dataSourceConfiguration"]
    if source.connector is None:
        return dict(configuration)
    parameters = json.dumps(source.connector["connectorParameters"])
    return {**configuration, CONNECTOR: {**source.connector, "connectorParameters": parameters}}
