"""Sidecars of every kind, for what reads them: the functions, and the local Bedrock."""

import json
from typing import Any

S3_VECTORS = "S3_VECTORS"
OTHER = "OTHER"
NOT_S3_VECTORS = ("OPENSEARCH_SERVERLESS", "MANAGED", OTHER)
NOT_MANAGED = (S3_VECTORS, "OPENSEARCH_SERVERLESS", OTHER)
EVERY = (S3_VECTORS, *NOT_S3_VECTORS)
NONE: tuple[str, ...] = ()


def sidecar(attributes: Any) -> bytes:
    return json.dumps({"metadataAttributes": attributes}, ensure_ascii=False).encode()


def typed(kind: str, member: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"value": {"type": kind, member: value}, **more}


ALL_TYPED = {
    "topic": typed("STRING", "stringValue", "leave", includeForEmbedding=True),
    "year": typed("NUMBER", "numberValue", 2026, includeForEmbedding=False),
    "internal": typed("BOOLEAN", "booleanValue", value=False),
    "audience": typed("STRING_LIST", "stringListValue", ["engineers", "people"]),
}
EXACTLY_10_KB = sidecar({"text": "x" * (10 * 1024 - len(sidecar({"text": ""})))})
EXACTLY_1_KB = sidecar({"text": "x" * (1024 - len('{"text":""}'))})

TAKEN = {
    "every plain type": (sidecar({"a": "x", "b": 1, "c": 1.5, "d": True, "e": ["x", "y"]}), EVERY),
    "every stated type": (sidecar(ALL_TYPED), EVERY),
    "both forms side by side": (sidecar({"a": "x", **ALL_TYPED}), EVERY),
    "no attribute": (sidecar({}), EVERY),
    "an empty text": (sidecar({"a": ""}), EVERY),
    "an empty list": (sidecar({"a": []}), EVERY),
    "a byte order mark": (b"\xef\xbb\xbf" + sidecar({"a": "x"}), EVERY),
    "other members next to the attributes": (b'{"note": 1, "metadataAttributes": {"a": 1}}', EVERY),
    "text beyond ASCII": (sidecar({"größe": "\U0001f41f" * 20}), EVERY),
    "a name of 100 characters": (sidecar({"k" * 100: "x"}), EVERY),
    "35 keys": (sidecar({f"key{number}": number for number in range(35)}), EVERY),
    "36 keys": (sidecar({f"key{number}": number for number in range(36)}), NOT_S3_VECTORS),
    "1,024 bytes": (EXACTLY_1_KB, EVERY),
    "1,025 bytes": (EXACTLY_1_KB.replace(b"xx", b"xxx", 1), NOT_S3_VECTORS),
    "1,024 bytes and blanks between them": (EXACTLY_1_KB.replace(b"{", b"{" + b" " * 100), EVERY),
    "few characters and many bytes": (sidecar({"a": "ü" * 600}), NOT_S3_VECTORS),
    "a list of more than 1 KB": (sidecar({"a": ["x" * 110] * 10}), NOT_S3_VECTORS),
    "a list of 10 members": (sidecar({"a": ["x"] * 10}), EVERY),
    "10 KB": (EXACTLY_10_KB, NOT_S3_VECTORS),
    "a name as those of the service": (
        sidecar({"_source_uri": "s3://a/b"}),
        (S3_VECTORS, "OPENSEARCH_SERVERLESS", OTHER),
    ),
}
"""A name for each, the file, and the vector stores of which a knowledge base takes it."""

REFUSED = {
    "no byte": (b"", "it is not JSON"),
    "text": (b"topic: leave", "it is not JSON"),
    "half a file": (b'{"metadataAttributes": {"a": ', "it is not JSON"),
    "UTF-16": ('{"metadataAttributes": {}}'.encode("utf-16"), "it is not JSON"),
    "Latin-1": ('{"metadataAttributes": {"a": "ü"}}'.encode("latin-1"), "it is not JSON"),
    "nested without end": (b"[" * 10_000, "it is not JSON"),
    "a number of 5,001 digits": (b'{"metadataAttributes": {"a": 1' + b"0" * 5000 + b"}}", "it is not JSON"),
    "a list": (b"[]", "it must be"),
    "null": (b"null", "it must be"),
    "attributes without the member": (b'{"topic": "leave"}', "it must be"),
    "a list of attributes": (b'{"metadataAttributes": [{"key": "a"}]}', "it must be"),
    "more than 10 KB": (EXACTLY_10_KB + b" ", "10"),
    "the attributes twice": (b'{"metadataAttributes": {}, "metadataAttributes": {}}', "'metadataAttributes'"),
    "a name twice": (b'{"metadataAttributes": {"topic": 1, "topic": 2}}', "'topic' is given twice"),
    "an empty name": (sidecar({"": "x"}), "''"),
    "a name of Bedrock's own": (
        sidecar({"x-amz-bedrock-kb-source-uri": "s3://other"}),
        "'x-amz-bedrock-kb-source-uri'",
    ),
    "a name that is half a character": (b'{"metadataAttributes": {"\\ud800": "x"}}', "is not valid Unicode"),
    "a value that is half a character": (b'{"metadataAttributes": {"a": "\\ud800"}}', "'a' is not valid Unicode"),
    "a member that is half a character": (b'{"metadataAttributes": {"a": ["x", "\\udfff"]}}', "'a' is not valid"),
    "null as a value": (sidecar({"a": None}), "'a' is neither"),
    "a list of 11 members": (sidecar({"a": ["x"] * 11}), "'a' is a list of 11 strings"),
    "a stated list of 11 members": (
        sidecar({"a": typed("STRING_LIST", "stringListValue", ["x"] * 11)}),
        "'a' is a list of 11 strings, and a knowledge base keeps at most 10: shorten it",
    ),
    "a list of numbers": (sidecar({"a": [1, 2]}), "'a' is neither"),
    "a list of lists": (sidecar({"a": [["x"]]}), "'a' is neither"),
    "a list of texts and null": (sidecar({"a": ["x", None]}), "'a' is neither"),
    "NaN": (b'{"metadataAttributes": {"a": NaN}}', "'a' is neither"),
    "infinity": (b'{"metadataAttributes": {"a": -Infinity}}', "'a' is neither"),
    "a number beyond all that are held": (b'{"metadataAttributes": {"a": 1e999}}', "'a' is neither"),
    "a whole number beyond all that are held": (sidecar({"a": 10**400}), "'a' is neither"),
    "an object": (sidecar({"a": {"b": 1}}), "'a' must be a value or"),
    "an unknown type": (sidecar({"a": typed("DATE", "dateValue", "2026")}), "'a' has the type 'DATE'"),
    "a stated type that is an object": (sidecar({"a": {"value": {"type": {}}}}), "'a' has the type {}"),
    "a stated type without a value": (
        sidecar({"a": {"value": {"type": "STRING"}}}),
        "needs a stringValue of that type",
    ),
    "a text as a stated number": (
        sidecar({"a": typed("NUMBER", "numberValue", "1")}),
        "needs a numberValue of that type",
    ),
    "a boolean as a stated number": (
        sidecar({"a": typed("NUMBER", "numberValue", value=True)}),
        "needs a numberValue of that type",
    ),
    "a number as a stated boolean": (
        sidecar({"a": typed("BOOLEAN", "booleanValue", 1)}),
        "needs a booleanValue of that type",
    ),
    "a number in a stated list": (sidecar({"a": typed("STRING_LIST", "stringListValue", [1])}), "'a' is neither"),
    "a value in another member": (
        sidecar({"a": typed("STRING", "numberValue", 1)}),
        "needs a stringValue of that type",
    ),
    "no word on embedding": (
        sidecar({"a": typed("STRING", "stringValue", "x", includeForEmbedding="yes")}),
        "'a' must be a value or",
    ),
}
"""A name for each, the file, and what the reason must say; no knowledge base takes any."""


def record_sidecar(
    content: Any = ("text",), include: Any = (), exclude: Any = (), attributes: Any = None, **more: Any
) -> bytes:
    """Write the sidecar of a CSV file whose rows are records."""
    columns = [[{"fieldName": name} for name in names] for names in (content, include, exclude)]
    structure = {
        "type": "RECORD_BASED_STRUCTURE_METADATA",
        "recordBasedStructureMetadata": {
            "contentFields": columns[0],
            "metadataFieldsSpecification": {"fieldsToInclude": columns[1], "fieldsToExclude": columns[2]},
        },
        **more,
    }
    own = {} if attributes is None else {"metadataAttributes": attributes}
    return json.dumps({**own, "documentStructureConfiguration": structure}).encode()
